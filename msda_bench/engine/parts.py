"""Splits the sources of a run into finer domains (Wen et al. 2020, section 3.1, remark 4), by k-means.

Looks only at the training inputs of one source at a time: at no label, no other domain and no test example.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from msda_bench.engine.settings import CPU, deterministic, stream_key
from msda_bench.engine.tensors import Examples, Numbers, all_numbers
from msda_bench.functional import SparseRows, normal, random_bits, uniform
from msda_bench.suite.protocol import Splitting, source_parts
from msda_bench.suite.run_spec import RunSpec

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
    """
    centres = _first_centres(points, clusters, key)
    nearest = torch.cdist(points, centres).argmin(1)
    for _ in range(ROUNDS):
        centres = _means(points, nearest, centres)
        before = nearest
        nearest = torch.cdist(points, centres).argmin(1)
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
        tried = torch.searchsorted(reached, draw * reached[-1], right=True)
        tried = tried.clamp(max=len(points) - 1)
        distances = torch.cdist(points[tried], points).square()
        left = torch.minimum(apart, distances)
        best = int(left.sum(1).argmin())
        chosen.append(int(tried[best]))
        apart = left[best]
    return points[chosen]


def _means(points: Tensor, nearest: Tensor, centres: Tensor) -> Tensor:
    sums = torch.zeros_like(centres).index_add_(0, nearest, points)
    sizes = torch.bincount(nearest, minlength=len(centres)).unsqueeze(1)
    means = sums / sizes.clamp(min=1)
    return torch.where(sizes > 0, means, centres)


def _filled(distances: Tensor, nearest: Tensor, smallest: int) -> Tensor:
    nearest = nearest.clone()
    sizes = torch.bincount(nearest, minlength=distances.shape[1])
    for cluster in sizes.argsort(stable=True).tolist():
        while sizes[cluster] < smallest:
            own = distances.gather(1, nearest.unsqueeze(1)).squeeze(1)
            extra = distances[:, cluster] - own
            point = extra.masked_fill(sizes[nearest] <= smallest, torch.inf).argmin()
            sizes[nearest[point]] -= 1
            sizes[cluster] += 1
            nearest[point] = cluster
    return nearest


def _by_size(nearest: Tensor, clusters: int) -> Tensor:
    sizes = torch.bincount(nearest, minlength=clusters)
    largest_first = sizes.argsort(descending=True, stable=True)
    number = torch.empty_like(sizes)
    number[largest_first] = torch.arange(clusters)
    return number[nearest]


RANK = 32
"""Directions to which wide inputs are reduced."""
_ROUNDS = 4


def part_rows(
    cell: RunSpec,
    splitting: Splitting,
    sources: Mapping[str, tuple[Examples, Tensor]],
    *,
    bags: bool,
) -> dict[str, Tensor]:
    """The rows of each part of each source, (n,) int64 in rising order.

    The draws come from the cell's own streams, so a split is a function of (dataset, target, seed), of the number of
    clusters and of the batch: each cluster holds at least a batch. Of each source the training examples and their rows
    are given; `bags` says that they are bags of words, sparse or dense.
    """
    part_of = {}
    # torch 2.11 warns of sparse tensors that are not checked unless that is said.
    with deterministic(CPU), torch.sparse.check_sparse_tensor_invariants(enable=False):  # type: ignore[no-untyped-call]
        for source, (examples, rows) in sources.items():
            key = stream_key(cell, "parts", source)
            if splitting.by == "chance":
                numbers = _by_chance(len(rows), splitting.clusters, key)
            else:
                smallest = 1 if cell.training.batch == "all" else cell.training.batch
                points = _points(examples, key, bags=bags)
                numbers = kmeans(points, splitting.clusters, smallest, key)
            for number, part in enumerate(source_parts(source, splitting)):
                mine = (numbers == number).to(rows.device)
                part_of[part] = rows[mine]
    return part_of


def _by_chance(count: int, parts: int, key: Tensor) -> Tensor:
    """A part for each of `count` rows; the parts are equal up to one row."""
    order = random_bits(key, torch.arange(count, dtype=torch.int32)).argsort(stable=True)
    numbers = torch.empty(count, dtype=torch.int64)
    numbers[order] = torch.arange(count) * parts // count
    return numbers


def _points(examples: Examples, key: Tensor, *, bags: bool) -> Tensor:
    """(n, d) float64 points to cluster: the inputs, or the coordinates of wide ones in few directions.

    Bags of words are scaled to unit length, so that clusters do not reflect their lengths alone. The directions span
    those of the largest singular values, by subspace iteration from a random start (Halko, Martinsson and Tropp 2011,
    algorithm 4.4); for words that is latent semantic analysis.
    """
    matrix = _matrix(all_numbers(examples))
    if bags:
        matrix = _of_unit_length(matrix)
    if matrix.shape[1] <= RANK:
        return matrix.to_dense()
    rank = min(RANK, len(examples))
    basis = normal(key, (matrix.shape[1], rank)).double()
    for _ in range(_ROUNDS):
        images = matrix.t() @ (matrix @ basis)
        basis = torch.linalg.qr(images).Q
    return matrix @ basis


def _matrix(examples: Numbers) -> Tensor:
    """(n, width) float64 on the CPU, sparse if the examples are."""
    if not isinstance(examples, SparseRows):
        return examples.cpu().double().flatten(1)
    places = torch.stack([examples.row_of(), examples.columns]).cpu()
    values = examples.values.cpu().double()
    size = (len(examples), examples.width)
    return torch.sparse_coo_tensor(places, values, size).coalesce()


def _of_unit_length(matrix: Tensor) -> Tensor:
    if not matrix.is_sparse:
        return torch.nn.functional.normalize(matrix)
    row_of = matrix.indices()[0]
    values = matrix.values()
    squares = values.new_zeros(len(matrix)).index_add_(0, row_of, values.square())
    scaled = values / squares.sqrt()[row_of].clamp(min=1e-12)
    return torch.sparse_coo_tensor(matrix.indices(), scaled, matrix.shape, is_coalesced=True)
