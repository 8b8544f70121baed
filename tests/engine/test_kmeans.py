"""No cluster of a partition is too small, for any points."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from msda_bench.engine.parts import kmeans


def key_of(seed: int) -> Tensor:
    return torch.tensor([seed, 11], dtype=torch.int32)


@st.composite
def problems(draw: st.DrawFn) -> tuple[Tensor, int, int, Tensor]:
    """Points with duplicates and outliers, and bounds on the cluster sizes."""
    clusters, smallest = draw(st.integers(1, 64)), draw(st.integers(1, 4))
    count = clusters * smallest + draw(st.integers(0, 30))
    generator = np.random.Generator(np.random.Philox(key=draw(st.integers(0, 2**32))))
    points = generator.standard_normal((count, draw(st.integers(1, 4)))) * draw(st.sampled_from([0.0, 1.0, 1e6]))
    points[: draw(st.integers(0, count))] = draw(st.sampled_from([0.0, 1.0]))
    return torch.from_numpy(points), clusters, smallest, key_of(draw(st.integers(0, 2**31 - 1)))


@settings(max_examples=25, deadline=None)
@given(problems())
def test_every_point_has_a_cluster_and_none_is_too_small(problem: tuple[Tensor, int, int, Tensor]) -> None:
    points, clusters, smallest, key = problem
    found = kmeans(points, clusters, smallest, key)
    assert found.shape == (len(points),)
    assert found.dtype == torch.int64
    sizes = torch.bincount(found, minlength=clusters)
    assert len(sizes) == clusters
    assert sizes.min() >= smallest
    assert sizes.tolist() == sorted(sizes.tolist(), reverse=True)
    assert torch.equal(found, kmeans(points.clone(), clusters, smallest, key))


@pytest.mark.parametrize("seed", range(8))
def test_distant_clusters_are_found(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    sizes, centres = [50, 40, 30], torch.tensor([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]]).double()
    truth = torch.repeat_interleave(torch.arange(3), torch.tensor(sizes))[torch.randperm(120, generator=generator)]
    noise = torch.rand(120, 2, generator=generator).double()
    assert torch.equal(kmeans(centres[truth] + noise, 3, 10, key_of(seed)), truth)


def test_a_cluster_that_is_too_small_takes_the_nearest_points() -> None:
    points = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 100.0]).double().unsqueeze(1)
    for seed in range(10):
        assert kmeans(points, 2, 1, key_of(seed)).tolist() == [0] * 7 + [1]
        assert kmeans(points, 2, 3, key_of(seed)).tolist() == [0] * 5 + [1] * 3


def test_too_few_points_are_refused() -> None:
    with pytest.raises(ValueError, match="4 clusters of at least 3 need more than the 11 points"):
        kmeans(torch.zeros(11, 2).double(), 4, 3, key_of(0))
