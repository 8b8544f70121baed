from __future__ import annotations

import math

import numpy as np
import pytest

from msda_bench_builtin.datasets import Sine


def test_domains_and_targets_are_as_documented():
    sine = Sine()
    assert sine.domains == (*sine.sources()["target_2"], *sine.sources())
    assert len(sine.sources()["target_0"]) == 8
    assert len(sine.sources()) == 4


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


def test_each_target_lies_between_two_sources(crafted):
    sine = Sine()
    means = {domain: sine.load(domain, crafted).x.mean() for domain in sine.domains}
    for j in range(4):
        near = sorted(range(8), key=lambda i: abs(means[f"source_{i}"] - means[f"target_{j}"]))[:2]
        assert sorted(near) == [2 * j, 2 * j + 1]


def test_without_noise_labels_are_the_sine(crafted):
    data = Sine(noise=0.0).load("source_3", crafted)
    assert np.allclose(data.y, np.sin(data.x[:, 0]), atol=1e-6)
