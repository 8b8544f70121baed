"""Rendered letters and digits, their distortions and draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from msda_bench.api import DataError
from msda_bench_builtin.datasets.digits import mnist_m_made, synth_fonts
from msda_bench_builtin.datasets.digits.mnist_m_made import blend
from msda_bench_builtin.datasets.digits.part import Part
from msda_bench_builtin.datasets.draws import Draws
from msda_bench_builtin.datasets.glyphs import LETTERS, Distortion, font_path, glyphs


def test_an_h_has_the_requested_height():
    found = glyphs(font_path("DejaVuSans.ttf"), 24, 64)
    rows = np.flatnonzero(found[LETTERS.index("H")].max(1) > 0.5)
    assert rows[-1] - rows[0] + 1 == pytest.approx(24, abs=1)


@pytest.mark.parametrize(
    ("font", "side", "says"),
    [
        ("Comic.ttf", 64, r"Comic\.ttf: matplotlib .* does not have this font; install the pinned release"),
        ("STIXSizOneSymReg.ttf", 64, r"STIXSizOneSymReg\.ttf: the font has no letter"),
        ("DejaVuSans.ttf", 20, r"DejaVuSans\.ttf: letter A is \d+ pixels long and does not fit 20"),
    ],
)
def test_a_font_that_cannot_be_used_is_named(font: str, side: int, says: str) -> None:
    with pytest.raises(DataError, match=says):
        glyphs(font_path(font), 24, side)


NONE = Distortion(rotation=0, shift=0, scale=0, aspect=0, blur=0, fade=0, noise=0)
SIDE = 33


@pytest.fixture
def bar() -> np.ndarray:
    image = np.zeros((2, SIDE, SIDE))
    image[0, 8:25, 14:19] = 1  # upright
    image[1, 14:19, 8:25] = 1  # lying
    return image


def apply(distortion: Distortion, images: np.ndarray, n: int = 40, *, size: int = SIDE, zoom: float = 1, seed: int = 0):
    soft = np.full_like(images, 0.5)
    which = np.arange(n) % len(images)
    return distortion.apply(images, soft, which, size=size, zoom=zoom, draws=Draws(("test", seed))) / 255


def test_zero_distortion_changes_nothing_and_zoom_shrinks(bar):
    assert np.array_equal(apply(NONE, bar)[:2], bar)
    assert np.allclose(apply(NONE, bar, 2, size=17, zoom=2), bar[:, ::2, ::2])


def spread(images: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Means and second central moments of the ink along rows and columns, of each image."""
    grid = np.arange(SIDE) - (SIDE - 1) / 2
    mass = images.sum((1, 2))
    y, x = (images.sum(2) @ grid / mass, images.sum(1) @ grid / mass)
    yy, xx = images.sum(2) @ grid**2 / mass - y**2, images.sum(1) @ grid**2 / mass - x**2
    xy = np.einsum("nij,i,j->n", images, grid, grid) / mass - x * y
    return y, x, yy, xx, xy


def test_shift_rotation_scale_and_aspect_reach_their_parameters(bar):
    moved = spread(apply(replace(NONE, shift=0.1), bar, 200))[:2]
    *_, yy, xx, xy = spread(apply(replace(NONE, rotation=20), bar[:1], 200))
    angles = np.rad2deg(np.arctan2(2 * xy, yy - xx) / 2)
    still = spread(bar[:1])
    longer = spread(apply(replace(NONE, scale=0.2), bar[:1], 200))[2]
    _, _, yy, xx, _ = spread(apply(replace(NONE, aspect=0.4), bar[:1], 200))
    for drawn, most, close in (
        (moved[0] / SIDE, 0.1, 0.005),
        (moved[1] / SIDE, 0.1, 0.005),
        (angles, 20, 1),
        (np.log(longer / still[2]) / 2, 0.2, 0.03),
        (np.log((xx / yy) / (still[3] / still[2])) / 2, 0.4, 0.06),
    ):
        assert drawn.max() == pytest.approx(most, abs=close)
        assert drawn.min() < -0.7 * most


def test_blur_fade_and_noise_change_the_greys(bar):
    faded = apply(replace(NONE, fade=0.4), bar).max((1, 2))
    assert 0.6 <= faded.min() < 0.65
    assert faded.max() > 0.95
    blurred = apply(replace(NONE, blur=0.5), bar).min((1, 2))
    assert 0.2 < blurred.max() <= 0.25 + 1 / 255
    noisy = apply(replace(NONE, noise=0.1), np.full((1, SIDE, SIDE), 0.5))
    assert noisy.std() == pytest.approx(0.1, rel=0.02)


COUNT = 60


@pytest.fixture(scope="module")
def rendered():
    return synth_fonts.render(COUNT, ("a test",))


def test_more_rendered_digits_extend_fewer(rendered, monkeypatch):
    assert np.array_equal(synth_fonts.render(20, ("a test",))["x"], rendered["x"][:20])
    assert not np.array_equal(synth_fonts.render(20, ("another",))["x"], rendered["x"][:20])
    monkeypatch.setattr(synth_fonts, "_AT_ONCE", 20)
    longer = synth_fonts.render(40, ("a test",))["x"]
    assert np.array_equal(longer[:20], rendered["x"][:20])
    assert not np.array_equal(longer[20:], longer[:20])


def test_the_middle_digit_is_the_label():
    clean, labels = synth_fonts._clean(), np.arange(1000) % 10
    ink, outline = synth_fonts._number(clean, labels, Draws(("a test",)))
    assert ink.min() >= 0
    assert (outline >= ink - 1e-9).all()
    middles = ink[:, 6:-6, 8:-8].reshape(1000, -1)
    half = np.arange(1000) < 500
    means = np.stack([middles[half & (labels == digit)].mean(0) for digit in range(10)])
    distances = ((middles[~half, None] - means) ** 2).sum(2)
    assert (distances.argmin(1) == labels[~half]).mean() > 0.4  # chance is 0.1


def test_a_blend_shows_the_photograph_and_its_negative_under_the_ink():
    grey = np.zeros((4, 32, 32), np.uint8)
    grey[:, 10:20, 10:20] = 200
    mnist = Part(np.broadcast_to(grey[:, None], (4, 3, 32, 32)), np.array([3, 1, 4, 1]))
    made = blend(mnist, 3, ("a test",))
    assert made["y"].tolist() == [3, 1, 4]
    plain = mnist_m_made.pieces(3, Draws(("a test",)))
    ink = mnist.x[:3] > 0
    assert np.array_equal(made["x"][~ink], plain[~ink])
    assert np.array_equal(made["x"][ink], 255 - plain[ink])


def test_the_numbers_are_pinned():
    draws = Draws(("golden", 1))
    assert draws.uniform("a", (3,)).tolist() == [0.5195987446744198, 0.392981318824304, 0.791229952162026]
    assert np.allclose(
        draws.normal("a", (3,)), [-0.8951973739503911, 0.25275746996119425, 0.922042145989415], rtol=1e-12
    )
