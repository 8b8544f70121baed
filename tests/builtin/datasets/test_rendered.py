"""Rendered letters and digits, their distortions and draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from msda_bench.api import DataError
from msda_bench_builtin.datasets import Fonts
from msda_bench_builtin.datasets.digits import mnist_m_made, synth_fonts
from msda_bench_builtin.datasets.digits.mnist_m_made import blend
from msda_bench_builtin.datasets.digits.part import Part
from msda_bench_builtin.datasets.draws import Draws
from msda_bench_builtin.datasets.glyphs import LETTERS, font_path, glyphs


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


NONE = Fonts(rotation=0, shift=0, scale=0, aspect=0, blur=0, fade=0, noise=0)
SIDE = 33


@pytest.fixture
def bar() -> np.ndarray:
    image = np.zeros((2, SIDE, SIDE))
    image[0, 8:25, 14:19] = 1  # upright
    image[1, 14:19, 8:25] = 1  # lying
    return image


def apply(fonts: Fonts, images: np.ndarray, n: int = 40, *, size: int = SIDE, zoom: float = 1, seed: int = 0):
    soft = np.full_like(images, 0.5)
    which = np.arange(n) % len(images)
    return replace(fonts, size=size).distorted(images, soft, which, zoom, Draws(("test", seed))) / 255


def test_zero_distortion_changes_nothing_and_zoom_shrinks(bar):
    assert np.array_equal(apply(NONE, bar)[:2], bar)
    assert np.allclose(apply(NONE, bar, 2, size=17, zoom=2), bar[:, ::2, ::2])


def test_distorted_bars_are_pinned(bar):
    """The ink of five copies, its middle along rows and columns, and its spread along rows and askew."""
    every = Fonts(rotation=20, shift=0.1, scale=0.2, aspect=0.4, blur=0.5, fade=0.4, noise=0.05)
    images, grid = apply(every, bar, 5), np.arange(SIDE)
    ink, rows, columns = images.sum((1, 2)), images.sum(2), images.sum(1)
    askew = np.einsum("nij,i,j->n", images, grid, grid)
    found = [ink / SIDE**2, rows @ grid / ink, columns @ grid / ink, rows @ grid**2 / ink, askew / ink]
    expected = [
        [0.087, 0.195, 0.148, 0.072, 0.184],
        [14.888, 15.532, 15.427, 14.114, 16.522],
        [17.074, 16.279, 15.525, 15.879, 15.48],
        [262.642, 319.988, 302.359, 234.97, 338.75],
        [248.987, 251.847, 237.897, 224.254, 257.688],
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


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
