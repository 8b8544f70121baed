"""Made domains: synthetic ones are where their pages place them, and rendered letters and digits."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from msda_bench.api import DataError
from msda_bench_builtin.datasets import Fonts, Sine, Stress
from msda_bench_builtin.datasets.digits import mnist_m_made, synth_fonts
from msda_bench_builtin.datasets.digits.mnist_m_made import blend
from msda_bench_builtin.datasets.digits.readers import Part
from msda_bench_builtin.datasets.features import Draws
from msda_bench_builtin.datasets.glyphs import LETTERS, font_path, glyphs

# Read off the authors' code, which places sources at the centres of eight equal pieces of [-pi, pi].
AUTHORS = {
    **{f"source_{i}": mean for i, mean in enumerate([-2.749, -1.963, -1.178, -0.393, 0.393, 1.178, 1.963, 2.749])},
    **{f"target_{j}": mean for j, mean in enumerate([-2.356, -0.785, 0.785, 2.356])},
}


@pytest.mark.parametrize("domain", Sine().domains)
def test_examples_are_a_noisy_sine_around_the_domains_mean(domain, crafted):
    data = Sine(size=4000).load(domain, crafted)
    assert len(data.y) == 4000
    i = int(domain[-1])
    is_source = domain.startswith("source")
    assert data.x.mean() == pytest.approx(AUTHORS[domain], abs=0.03)
    ends = Sine(size=4000, means="ends").load(domain, crafted)
    mean = -math.pi + 2 * math.pi / 7 * (i if is_source else 2 * i + 0.5)
    assert ends.x.mean() == pytest.approx(mean, abs=0.03)
    assert (data.x - ends.x).std() < 1e-6
    assert data.x.std() == pytest.approx(0.2 if is_source else 0.4, rel=0.05)
    noise = data.y - np.sin(data.x[:, 0])
    assert noise.std() == pytest.approx(0.05, rel=0.05)
    assert noise.mean() == pytest.approx(0, abs=0.005)


@pytest.mark.parametrize("domain", Stress().domains)
def test_clouds_are_where_the_docstring_places_them(domain, crafted):
    stress = Stress(size=20_000, target_size=20_000, near=20.0, far=40.0, separation=3.0)
    data = stress.load(domain, crafted)
    assert len(data.y) == 20_000
    turn = np.radians({"near": 20, "duplicate": 20, "far": 40, "flipped": 90}.get(domain, 0))
    first = 4 if domain == "irrelevant" else 0
    for label in range(4):
        mean = np.zeros(16)
        mean[first + label] = 3 * np.cos(turn)
        mean[first + (label + 1) % 4] += 3 * np.sin(turn)
        of_class = data.x[data.y == label]
        assert np.allclose(of_class.mean(0), mean, atol=0.12)
        assert np.allclose(of_class.std(0), 1, atol=0.12)
    shares = np.array([8, 4, 2, 1]) / 15 if "shifted" in domain else np.full(4, 0.25)
    assert np.allclose(np.bincount(data.y) / len(data.y), shares, atol=0.015)


def test_relatedness_of_sources_whose_worth_is_known_in_closed_form():
    """All but the right class have independent coordinates: P(right) = E[Phi(z + separation)^3]."""
    z = np.linspace(-8, 12, 4001)
    right = np.trapezoid(norm.pdf(z - 2.5) * norm.cdf(z) ** 3, z)
    # Of a flipped source, the right class is taken where the one before it has the largest coordinate.
    flipped = np.trapezoid(norm.pdf(z) * norm.cdf(z) ** 2 * norm.cdf(z - 2.5), z)
    worth = Stress().relatedness("target")
    assert worth["irrelevant"] == pytest.approx(25, abs=0.8)
    assert worth["flipped"] == pytest.approx(100 * flipped, abs=0.5)
    assert Stress(near=0.0).relatedness("target")["near"] == pytest.approx(100 * right, abs=0.5)


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
def test_a_font_that_cannot_be_used_is_named(font, side, says):
    with pytest.raises(DataError, match=says):
        glyphs(font_path(font), 24, side)


NONE = Fonts(rotation=0, shift=0, scale=0, aspect=0, blur=0, fade=0, noise=0)
SIDE = 33


@pytest.fixture
def bar():
    image = np.zeros((2, SIDE, SIDE))
    image[0, 8:25, 14:19] = 1  # upright
    image[1, 14:19, 8:25] = 1  # lying
    return image


def apply(fonts, images, n=40, *, size=SIDE, zoom=1):
    soft = np.full_like(images, 0.5)
    which = np.arange(n) % len(images)
    return replace(fonts, size=size).distorted(images, soft, which, zoom, Draws(("test", 0))) / 255


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


def test_more_rendered_digits_extend_fewer(monkeypatch):
    rendered = synth_fonts.render(60, ("a test",))
    assert np.array_equal(synth_fonts.render(20, ("a test",))["x"], rendered["x"][:20])
    assert not np.array_equal(synth_fonts.render(20, ("another",))["x"], rendered["x"][:20])
    monkeypatch.setattr(synth_fonts, "_AT_ONCE", 20)
    longer = synth_fonts.render(40, ("a test",))["x"]
    assert np.array_equal(longer[:20], rendered["x"][:20])
    assert not np.array_equal(longer[20:], longer[:20])


def test_rendered_digits_are_pinned():
    """The mean of each colour, and how far an image's numbers lie apart; their edges depend on the renderer."""
    x = synth_fonts.render(6, ("a test",))["x"].astype(float)
    colours = [[170, 159, 121], [195, 95, 193], [148, 136, 147], [189, 137, 165], [143, 127, 111], [171, 131, 56]]
    assert np.allclose(x.mean((2, 3)), colours, atol=2)
    assert np.allclose(x.std((1, 2, 3)), [54, 67, 31.5, 52, 50, 58.5], atol=2)


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
