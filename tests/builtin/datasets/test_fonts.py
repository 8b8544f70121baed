from __future__ import annotations

import numpy as np
import pytest

from msda_bench.data import Folders, LocalFiles
from msda_bench_builtin.datasets import Fonts

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


@pytest.mark.parametrize("size", [12, 16, 33, 64])
def test_images_of_any_size_show_equal_letters(crafted, size):
    fonts = Fonts(per_class=1, size=size, **CLEAN)
    ink = fonts.load("sans", crafted).x.mean((1, 2, 3))
    usual = Fonts(per_class=1, **CLEAN).load("sans", crafted).x.mean((1, 2, 3))
    assert np.corrcoef(ink, usual)[0, 1] > 0.95
    assert ink.mean() == pytest.approx(usual.mean(), rel=0.1)


def test_rendered_images_are_cached(tmp_path):
    files = LocalFiles(Folders(None, tmp_path))
    first = Fonts(per_class=2).load("mono", files)
    (kept,) = (tmp_path / "derived").iterdir()
    stamp = kept.stat().st_mtime_ns
    again = Fonts(per_class=2).load("mono", files)
    assert kept.stat().st_mtime_ns == stamp
    assert np.array_equal(first.x, again.x)


def test_the_fingerprint_depends_on_the_renderer(monkeypatch):
    usual = Fonts().fingerprint()
    monkeypatch.setattr("matplotlib.ft2font.__freetype_version__", "0.0.0")
    assert Fonts().fingerprint() != usual


def test_a_nearest_mean_classifier_does_worse_from_other_fonts(crafted):
    """Checks without training that the task has the intended gap between domains."""
    fonts = Fonts()
    data = {domain: fonts.load(domain, crafted) for domain in fonts.domains}

    def means(domain: str) -> np.ndarray:
        x = data[domain].x.reshape(-1, 26, 400)
        return x[: len(x) // 2].mean(0)

    def accuracy(centres: np.ndarray, domain: str) -> float:
        x = data[domain].x.reshape(-1, 26, 400)[fonts.per_class // 2 :]
        scores = x @ centres.T - 0.5 * (centres**2).sum(-1)
        return float((scores.argmax(-1) == np.arange(26)).mean())

    for target in ("mono_bold_oblique", "cm_typewriter", "cm_maths"):
        own = accuracy(means(target), target)
        others = accuracy(np.mean([means(domain) for domain in fonts.domains if domain != target], 0), target)
        assert own > 0.6
        assert others < own - 0.1
