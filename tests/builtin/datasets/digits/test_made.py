"""The two synthetic domains."""

from __future__ import annotations

import numpy as np
import pytest

from msda_bench_builtin.datasets.digits import mnist_m_made, synth_fonts
from msda_bench_builtin.datasets.digits.mnist_m_made import blend
from msda_bench_builtin.datasets.digits.part import Part
from msda_bench_builtin.datasets.draws import Draws

COUNT = 60


@pytest.fixture(scope="module")
def rendered():
    return synth_fonts.render(COUNT, ("a test",))


def test_rendered_digits_take_turns(rendered):
    assert rendered["x"].shape == (COUNT, 3, 32, 32)
    assert rendered["x"].dtype == np.uint8
    assert rendered["y"].tolist() == list(range(10)) * 6


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


def test_pieces_of_the_photograph_differ_and_are_reproducible():
    pieces = mnist_m_made.pieces(50, Draws(("a test",)))
    assert pieces.shape == (50, 3, 32, 32)
    assert np.array_equal(pieces, mnist_m_made.pieces(50, Draws(("a test",))))
    assert len(np.unique(pieces.reshape(50, -1), axis=0)) == 50
    assert 60 < pieces.mean() < 195
    assert mnist_m_made.photograph().shape == (3, 600, 512)
