"""k-means with a minimum cluster size."""

from __future__ import annotations

import torch
from torch import Tensor

from msda_bench.functional import uniform

ROUNDS = 100
"""Updates of the centres at most; they converge long before."""
TRIES = 5
"""Candidates drawn for each of the first centres; the best is taken."""


def kmeans(points: Tensor, clusters: int, smallest: int, key: Tensor) -> Tensor:
    """Which cluster each point belongs to.

    The first centres are drawn by k-means++ (Arthur and Vassilvitskii 2007), each the best of some draws, and moved by
    Lloyd's rule until no point changes its cluster. Then a cluster that is too small takes the points that cost least
    extra distance, one after another, from clusters that can spare one. The clusters are numbered from the largest to
    the smallest.

    Args:
        points: (n, d) float64, on the CPU.
        clusters: how many.
        smallest: the minimum number of points in a cluster; clusters * smallest <= n.
        key: (2,) int32, for the draws.

    Returns:
        (n,) int64, from 0 to clusters - 1.

    Raises:
        ValueError: there are too few points.
    """
    if clusters * smallest > len(points):
        raise ValueError(f"{clusters} clusters of at least {smallest} need more than the {len(points)} points")
    centres = _first_centres(points, clusters, key)
    nearest = torch.cdist(points, centres).argmin(1)
    for _ in range(ROUNDS):
        centres = _means(points, nearest, centres)
        before, nearest = nearest, torch.cdist(points, centres).argmin(1)
        if torch.equal(before, nearest):
            break
    return _by_size(_filled(torch.cdist(points, centres), nearest, smallest), clusters)


def _first_centres(points: Tensor, clusters: int, key: Tensor) -> Tensor:
    draws = uniform(key, (clusters, TRIES)).double()
    chosen = [int(draws[0, 0] * len(points))]
    apart = (points - points[chosen]).square().sum(1)
    for draw in draws[1:]:
        # Drawn with a chance proportional to the squared distance from the centres so far.
        reached = apart.cumsum(0)
        tried = torch.searchsorted(reached, draw * reached[-1], right=True).clamp(max=len(points) - 1)
        left = torch.minimum(apart, torch.cdist(points[tried], points).square())
        best = int(left.sum(1).argmin())
        chosen.append(int(tried[best]))
        apart = left[best]
    return points[chosen]


def _means(points: Tensor, nearest: Tensor, centres: Tensor) -> Tensor:
    sums = torch.zeros_like(centres).index_add_(0, nearest, points)
    sizes = torch.bincount(nearest, minlength=len(centres)).unsqueeze(1)
    return torch.where(sizes > 0, sums / sizes.clamp(min=1), centres)


def _filled(distances: Tensor, nearest: Tensor, smallest: int) -> Tensor:
    nearest, sizes = nearest.clone(), torch.bincount(nearest, minlength=distances.shape[1])
    for cluster in sizes.argsort(stable=True).tolist():
        while sizes[cluster] < smallest:
            extra = distances[:, cluster] - distances.gather(1, nearest.unsqueeze(1)).squeeze(1)
            point = extra.masked_fill(sizes[nearest] <= smallest, torch.inf).argmin()
            sizes[nearest[point]] -= 1
            sizes[cluster] += 1
            nearest[point] = cluster
    return nearest


def _by_size(nearest: Tensor, clusters: int) -> Tensor:
    sizes = torch.bincount(nearest, minlength=clusters)
    number = torch.empty_like(sizes)
    number[sizes.argsort(descending=True, stable=True)] = torch.arange(clusters)
    return number[nearest]
