"""Sources split into parts: the examples in each part, and how runs use them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from msda_bench.api import Dataset, DomainData, InputSpec, Size, Task, component
from msda_bench.engine.parts import kmeans
from msda_bench.suite.cell import Ref
from msda_bench.suite.protocol import Splitting
from msda_bench_builtin.schemes import Adapt
from tests.engine.conftest import Toy, make_cell, prepare, result, run_of, train

FOUR = Splitting(clusters=4)


def key_of(seed):
    return torch.tensor([seed, 11], dtype=torch.int32)


@st.composite
def problems(draw):
    """Points with duplicates and outliers, and bounds on the cluster sizes."""
    clusters, smallest = draw(st.integers(1, 64)), draw(st.integers(1, 4))
    count = clusters * smallest + draw(st.integers(0, 30))
    generator = np.random.Generator(np.random.Philox(key=draw(st.integers(0, 2**32))))
    points = generator.standard_normal((count, draw(st.integers(1, 4)))) * draw(st.sampled_from([0.0, 1.0, 1e6]))
    points[: draw(st.integers(0, count))] = draw(st.sampled_from([0.0, 1.0]))
    return torch.from_numpy(points), clusters, smallest, key_of(draw(st.integers(0, 2**31 - 1)))


@settings(max_examples=20)
@given(problems())
def test_every_point_has_a_cluster_and_none_is_too_small(problem):
    points, clusters, smallest, key = problem
    found = kmeans(points, clusters, smallest, key)
    assert (found.shape, found.dtype) == ((len(points),), torch.int64)
    sizes = torch.bincount(found, minlength=clusters).tolist()
    assert len(sizes) == clusters
    assert min(sizes) >= smallest
    assert sizes == sorted(sizes, reverse=True)
    assert torch.equal(found, kmeans(points.clone(), clusters, smallest, key))


@pytest.mark.parametrize("seed", range(5))
def test_distant_clusters_are_found(seed):
    generator = torch.Generator().manual_seed(seed)
    sizes, centres = [50, 40, 30], torch.tensor([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]]).double()
    truth = torch.repeat_interleave(torch.arange(3), torch.tensor(sizes))[torch.randperm(120, generator=generator)]
    noise = torch.rand(120, 2, generator=generator).double()
    assert torch.equal(kmeans(centres[truth] + noise, 3, 10, key_of(seed)), truth)
    points = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 100.0]).double().unsqueeze(1)
    assert kmeans(points, 2, 1, key_of(seed)).tolist() == [0] * 7 + [1]
    assert kmeans(points, 2, 2, key_of(seed)).tolist() == [0] * 6 + [1] * 2  # it takes the nearest points


def rows_of(dataset, cell):
    """The rows of the parts of each source, as lists."""
    seen = prepare(cell, dataset).training_for(Adapt(), cell)
    return {name: rows.tolist() for name, rows in seen.rows.items() if "/" in name}


@component
class Blobs(Dataset):
    name = "blobs"
    train: Size = 90
    form: str = "numbers"
    domains = ("a", "b", "c")
    task = Task("classification", 2)

    @property
    def input(self):
        return InputSpec((3, 8, 8) if self.form == "images" else (200,), sparse=self.form == "bags")

    def load(self, domain, files):
        generator = np.random.Generator(np.random.Philox(key=ord(domain)))
        blob = np.arange(120) % 3 == 2
        x = generator.random((120, 192 if self.form == "images" else 200)).astype(np.float32)
        word = np.arange(x.shape[1])
        if self.form == "bags":
            # Texts of two kinds differ in forty words; their lengths differ more within a kind than between them.
            own = (word < 20) & ~blob[:, None] | (word >= 180) & blob[:, None]
            bags = (x < np.where(own, 0.5, 0.03)) * (1 + np.arange(120) % 7)[:, None]
            return DomainData(scipy.sparse.csr_matrix(bags.astype(np.float32)), blob.astype(np.int64))
        x += 2 * blob[:, None] * (word % 2)
        return DomainData(x.reshape(120, *self.input.shape), blob.astype(np.int64))


@pytest.mark.parametrize("form", ["numbers", "images", "bags"])
@pytest.mark.parametrize("seed", range(2))
def test_two_distant_clusters_are_separated(form, seed):
    cell = make_cell(seed=seed, split_sources=Splitting(clusters=2))
    data = prepare(cell, Blobs(form=form)).training_for(Adapt(), cell)
    for source in "ab":
        # Here the label says which blob it is; the larger one comes first.
        parts = [data.rows[f"{source}/{part}"] for part in (0, 1)]
        assert [data.y[rows].unique().tolist() for rows in parts] == [[0], [1]]
        assert len(parts[0]) > len(parts[1])


@pytest.mark.parametrize("by", ["kmeans", "chance"])
@pytest.mark.parametrize("sparse", [True, False])
def test_parts_are_a_partition_of_their_source(by, sparse):
    found = rows_of(Toy(sparse=sparse), make_cell(split_sources=Splitting(clusters=4, by=by)))
    assert list(found) == [f"{source}/{part}" for source in "ab" for part in range(4)]
    for source, start in (("a", 0), ("b", 60)):
        parts = [found[f"{source}/{part}"] for part in range(4)]
        assert sorted(chain.from_iterable(parts)) == list(range(start, start + 60))
        assert all(part == sorted(part) and len(part) >= 10 for part in parts)
        assert by == "kmeans" or {len(part) for part in parts} == {15}


def test_parts_depend_only_on_split_and_source():
    cell = make_cell(split_sources=FOUR)
    found = rows_of(Toy(), cell)
    assert found == rows_of(Toy(), make_cell("MDMN", split_sources=FOUR))
    for poisoned in "abc":
        assert found == rows_of(Toy(poison=poisoned), cell)
    alone = rows_of(Toy(), replace(cell, sources=("a",)))
    assert alone == {name: rows for name, rows in found.items() if name.startswith("a/")}
    assert found != rows_of(Toy(), make_cell(split_sources=FOUR, seed=1))
    assert found != rows_of(Toy(), make_cell(split_sources=Splitting(clusters=4, by="chance")))


@pytest.mark.parametrize("options", [{"split_sources": FOUR}, {"labelled_target": 12}])
def test_the_effective_sample_size_accounts_for_the_sizes_of_groups(options):
    cell = make_cell("MDAN", **options)
    (record,) = train([cell])
    sizes = [sum(group) for group in run_of(cell).sizes]
    assert len(set(sizes)) > 1
    weights = record.curves.weights[-1]
    expected = 1 / sum(weight**2 / size for weight, size in zip(weights, sizes, strict=True))
    assert record.bound["effective_sample_size"] == pytest.approx(expected, rel=1e-4)
    assert record.bound["weights_norm"] == pytest.approx(np.linalg.norm(weights), rel=1e-4)


@pytest.mark.parametrize("stack", [1, 2])
def test_aggregators_receive_the_sizes_of_each_runs_sources(stack):
    """The parts of split sources have sizes that depend on the seed."""
    size = Ref("aggregator", "size", 1, "msda-bench", {})
    cells = [
        replace(make_cell(seed=seed, split_sources=Splitting(clusters=2), epochs=1), aggregator=size) for seed in (0, 1)
    ]
    sizes = [[sum(group) for group in run_of(cell).sizes] for cell in cells]
    assert sizes[0] != sizes[1]
    for record, counts in zip(train(cells, stack=stack), sizes, strict=True):
        assert record.provenance["stack"] == stack
        assert len(set(counts)) > 1
        assert record.curves.weights[-1] == pytest.approx([count / sum(counts) for count in counts], abs=1e-5)


@pytest.mark.parametrize(
    ("method", "clusters"), [("DARN", 1), ("MDMN", 1), ("TAR", 1), ("SRC", 4), ("DANN", 4), ("TAR", 4)]
)
def test_one_cluster_equals_the_whole_source_and_a_pool_does_not_change_bit_for_bit(method, clusters):
    whole, split = train([make_cell(method, split_sources=given) for given in (None, Splitting(clusters=clusters))])
    assert result(split) == result(whole)
