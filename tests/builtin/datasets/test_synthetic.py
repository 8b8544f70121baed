"""Synthetic domains are where their pages place them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from msda_bench_builtin.datasets import Sine, Stress

# Read off the authors' code, which places sources at the centres of eight equal pieces of [-pi, pi].
AUTHORS = {
    **{f"source_{i}": mean for i, mean in enumerate([-2.749, -1.963, -1.178, -0.393, 0.393, 1.178, 1.963, 2.749])},
    **{f"target_{j}": mean for j, mean in enumerate([-2.356, -0.785, 0.785, 2.356])},
}


@pytest.mark.parametrize("domain", Sine().domains)
def test_examples_are_a_noisy_sine_around_the_domains_mean(domain, crafted):
    data = Sine(size=4000).load(domain, crafted)
    assert data.x.shape == (4000, 1)
    assert data.x.dtype == data.y.dtype == np.float32
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


@pytest.fixture(scope="module")
def worth() -> dict[str, dict[str, float]]:
    stress = Stress()
    return {target: dict(stress.relatedness(target)) for target in stress.sources()}


@pytest.mark.parametrize("domain", Stress().domains)
def test_clouds_are_where_the_docstring_places_them(domain, crafted):
    stress = Stress(size=20_000, target_size=20_000, near=20.0, far=40.0, separation=3.0)
    data = stress.load(domain, crafted)
    assert data.x.shape == (20_000, 16)
    assert (data.x.dtype, data.y.dtype) == (np.float32, np.int64)
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


def test_relatedness_of_sources_whose_worth_is_known_in_closed_form(worth):
    """All but the right class have independent coordinates: P(right) = E[Phi(z + separation)^3]."""
    z = np.linspace(-8, 12, 4001)
    right = np.trapezoid(norm.pdf(z - 2.5) * norm.cdf(z) ** 3, z)
    # Of a flipped source, the right class is taken where the one before it has the largest coordinate.
    flipped = np.trapezoid(norm.pdf(z) * norm.cdf(z) ** 2 * norm.cdf(z - 2.5), z)
    assert worth["target"]["irrelevant"] == pytest.approx(25, abs=0.8)
    assert worth["target"]["flipped"] == pytest.approx(100 * flipped, abs=0.5)
    assert Stress(near=0.0).relatedness("target")["near"] == pytest.approx(100 * right, abs=0.5)
