"""Rendered letters and their distortions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from msda_bench.api import DataError
from msda_bench_builtin.datasets import Fonts
from msda_bench_builtin.datasets.draws import Draws
from msda_bench_builtin.datasets.glyphs import LETTERS, Distortion, font_path, glyphs

CLEAN = {"rotation": 0.0, "shift": 0.0, "scale": 0.0, "aspect": 0.0, "blur": 0.0, "fade": 0.0, "noise": 0.0}


def test_images_are_grey_and_in_the_order_of_the_alphabet(crafted):
    fonts = Fonts(per_class=3)
    data = fonts.load("serif", crafted)
    assert data.x.shape == (78, 1, 20, 20)
    assert data.x.dtype == np.float32
    assert data.x.min() == 0
    assert data.x.max() == 1
    assert data.y.tolist() == [*range(26)] * 3


def test_every_letter_of_every_font_looks_different(crafted):
    fonts = Fonts(per_class=1, **CLEAN)
    images = np.concatenate([fonts.load(domain, crafted).x.reshape(26, -1) for domain in fonts.domains])
    apart = np.abs(images[:, None] - images[None]).sum(-1) + 100 * np.eye(len(images))
    assert apart.min() > 2  # pixels' worth of ink
    assert min(apart[start : start + 26, start : start + 26].min() for start in range(0, len(apart), 26)) > 6
    assert images.sum(-1).min() > 8
    assert images.sum(-1).max() < 150


def test_no_letter_is_cut_off(crafted):
    fonts = Fonts(per_class=1, **CLEAN)
    for domain in fonts.domains:
        images = fonts.load(domain, crafted).x[:, 0]
        assert max(edge.max() for edge in (images[:, 0], images[:, -1], images[..., 0], images[..., -1])) < 0.5


def test_an_h_has_the_requested_height():
    found = glyphs(font_path("DejaVuSans.ttf"), 24, 64)
    rows = np.flatnonzero(found[LETTERS.index("H")].max(1) > 0.5)
    assert rows[-1] - rows[0] + 1 == pytest.approx(24, abs=1)


def test_a_font_that_matplotlib_lacks_is_named():
    with pytest.raises(
        DataError, match=r"Comic\.ttf: matplotlib .* does not have this font; install the pinned release"
    ):
        font_path("Comic.ttf")


def test_a_font_without_letters_is_named():
    with pytest.raises(DataError, match=r"STIXSizOneSymReg\.ttf: the font has no letter"):
        glyphs(font_path("STIXSizOneSymReg.ttf"), 24, 64)


def test_a_letter_too_large_for_its_square_is_named():
    with pytest.raises(DataError, match=r"DejaVuSans\.ttf: letter A is \d+ pixels long and does not fit 20"):
        glyphs(font_path("DejaVuSans.ttf"), 24, 20)


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


def test_zero_distortion_changes_nothing(bar):
    found = apply(NONE, bar)
    assert np.array_equal(found[::2], np.repeat(bar[:1], 20, 0))
    assert np.array_equal(found[1::2], np.repeat(bar[1:], 20, 0))


def test_zoom_shrinks_images(bar):
    assert np.allclose(apply(NONE, bar, 2, size=17, zoom=2), bar[:, ::2, ::2])


def spread(images: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Means and second central moments of the ink along rows and columns, of each image."""
    grid = np.arange(SIDE) - (SIDE - 1) / 2
    mass = images.sum((1, 2))
    y, x = (images.sum(2) @ grid / mass, images.sum(1) @ grid / mass)
    yy, xx = images.sum(2) @ grid**2 / mass - y**2, images.sum(1) @ grid**2 / mass - x**2
    xy = np.einsum("nij,i,j->n", images, grid, grid) / mass - x * y
    return y, x, yy, xx, xy


def test_shift_moves_images_up_to_its_share_of_the_side(bar):
    y, x, *_ = spread(apply(replace(NONE, shift=0.1), bar, 200))
    for moved in (y, x):
        assert abs(moved).max() == pytest.approx(3.3, abs=0.15)
        assert abs(moved.mean()) < 0.5


def test_rotation_turns_images_up_to_its_angle(bar):
    *_, yy, xx, xy = spread(apply(replace(NONE, rotation=20), bar[:1], 200))
    angle = np.rad2deg(np.arctan2(2 * xy, yy - xx) / 2)
    assert abs(angle).max() == pytest.approx(20, abs=1)
    assert abs(angle.mean()) < 2


def test_scale_and_aspect_change_lengths(bar):
    _, _, yy, xx, _ = spread(apply(replace(NONE, scale=0.2), bar[:1], 200))
    still = spread(bar[:1])
    assert 0.5 * np.log(yy / still[2]).max() == pytest.approx(0.2, abs=0.03)
    _, _, yy, xx, _ = spread(apply(replace(NONE, aspect=0.4), bar[:1], 200))
    ratio = 0.5 * np.log((xx / yy) / (still[3] / still[2]))
    assert abs(ratio).max() == pytest.approx(0.4, abs=0.06)


def test_blur_fade_and_noise_change_the_greys(bar):
    faded = apply(replace(NONE, fade=0.4), bar).max((1, 2))
    assert 0.6 <= faded.min() < 0.65
    assert faded.max() > 0.95
    blurred = apply(replace(NONE, blur=0.5), bar).min((1, 2))
    assert 0.2 < blurred.max() <= 0.25 + 1 / 255
    noisy = apply(replace(NONE, noise=0.1), np.full((1, SIDE, SIDE), 0.5))
    assert noisy.std() == pytest.approx(0.1, rel=0.02)


def test_different_identities_give_different_images(bar):
    worn = replace(NONE, shift=0.1, noise=0.1)
    assert np.array_equal(apply(worn, bar), apply(worn, bar))
    assert not np.array_equal(apply(worn, bar), apply(worn, bar, seed=1))
