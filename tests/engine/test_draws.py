"""Which examples and numbers a run draws: streams, batches, curves of its epochs, and the parts of split sources."""

import hashlib
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import nn

from msda_bench.api import Dataset, DomainData, Dropout, InputSpec, Phase, Size, Stage, Task, component
from msda_bench.engine.draws import Draws, Sampler
from msda_bench.engine.fit import TrainingResult
from msda_bench.engine.parts import kmeans
from msda_bench.engine.prepared import TrainingData
from msda_bench.engine.settings import stream_key
from msda_bench.suite.protocol import Splitting
from msda_bench.suite.run_spec import ComponentSpec
from msda_bench_builtin.schemes import Adapt
from tests.engine.conftest import OwnStep, Toy, at_seeds, backbone, make_cell, prepare, result, run_of, swapped, train
from tests.strangers.source_free import SourceFree

KEYS = "63199eb0fe5ecaaf667da43520016171fad4bbab5362dbf4d87503ab063d87bc"
KEYED = ["features.0", "features.1", "critic.0", "critic.1", "critic.2"]


def test_a_stream_never_changes_and_depends_on_purpose_seed_and_target_but_not_on_the_method():
    same = [1048993373, -1785199305]
    assert stream_key(make_cell("DARN"), "batches").tolist() == same
    assert stream_key(make_cell("MDMN"), "batches").tolist() == same
    for other in (make_cell(seed=1), make_cell(target="a")):
        assert stream_key(other, "batches").tolist() != same
    assert stream_key(make_cell(), "steps").tolist() != same


@pytest.mark.parametrize("cell", [make_cell("MCD"), make_cell("WDGRL"), swapped(make_cell(), SourceFree)])
def test_no_key_is_used_twice(cell):
    """Keys differ between phases of a step and between stages, too."""
    draws = Draws(run_of(cell, SourceFree), KEYED[1:4])
    epochs = range(3)
    keys = torch.cat([draws.keys(epoch).view(-1, 2) for epoch in epochs])
    passes = torch.stack([draws.passes(epoch, stage) for epoch in epochs for stage in range(draws._stages)])
    images = torch.cat([draws.augment(epoch) for epoch in epochs])
    for drawn in (keys, passes, images):
        assert len(drawn.unique(dim=0)) == len(drawn)


@pytest.mark.parametrize("method", ["DARN", "MCD"])
def test_keys_of_a_first_phase_match_stored_records(method):
    """Methods with one phase keep the keys of engine version 1, by digest; a critic's keys change no others."""
    run = run_of(make_cell(method))
    plain, keys, more = (Draws(run, KEYED[:count]).keys(1)[:, 0].contiguous() for count in (2, 3, 5))
    assert torch.equal(more[:, :3], plain)
    assert hashlib.sha256(keys.numpy().tobytes()).hexdigest() == KEYS


def sampler(groups, batch, steps, *seeds, whole=False):
    rows = {"a": torch.arange(7), "b": torch.arange(7, 20), "t": torch.arange(20, 50)}
    keys = torch.tensor([[seed, 6] for seed in seeds], dtype=torch.int32)
    return Sampler(
        TrainingData(torch.zeros(50, 1), torch.zeros(50), rows, "t"), groups, batch, steps, keys, whole=whole
    )


def test_each_group_draws_from_its_own_domains_and_by_a_stream_of_its_own():
    drawn, places = sampler([("a",), ("b",), ("t",)], 20, 30, 1, 2, 3).epoch(2)
    assert drawn.shape == (30, 3, 20)
    for group, rows in enumerate([range(7), range(7, 20), range(20, 50)]):
        assert set(drawn[:, group].flatten().tolist()) == set(rows)
        assert torch.equal(places[:, group] + rows[0], drawn[:, group])
    alone = sampler([("b",)], 20, 30, 2).epoch(2)[0]
    assert torch.equal(drawn[:, 1], alone[:, 0])


def test_pooled_domains_are_drawn_in_proportion_to_their_sizes():
    counts = torch.bincount(sampler([("t", "a")], 500, 40, 4).epoch(0)[0].flatten(), minlength=50)
    assert counts[7:20].sum() == 0
    assert stats.chisquare(torch.cat([counts[:7], counts[20:]]).numpy()).pvalue > 1e-4


def test_full_batches_take_groups_in_order_and_repeat_smaller_ones():
    taken = sampler([("a",), ("b",), ("a", "b")], 20, 3, 1, 2, 3, whole=True).epoch(5)[0]
    assert taken.shape == (3, 3, 20)
    for step in taken.tolist():
        assert step == [[*range(7), *range(7), *range(6)], [*range(7, 20), *range(7, 14)], list(range(20))]


OnlyDropout = backbone("only_dropout", lambda width, outputs: (Dropout(0.5), nn.Linear(width, outputs), width))


def test_masks_and_keys_differ_between_the_phases_of_a_step():
    masks, keys = [], []

    @component
    class Repeats(OwnStep):
        name = "repeats"
        stages = (Stage("all", phases=(Phase("critic"), Phase("critic"), Phase("network"))),)

        def step(self, parts, batch, state, phase):
            masks.append(parts.features(torch.ones_like(batch.x)))
            keys.append(batch.key)
            return super().step(parts, batch, state, phase)

    cell = swapped(swapped(make_cell(dataset={"sparse": False}, epochs=1, steps=3), OnlyDropout), Repeats)
    assert train([cell], OnlyDropout, Repeats)[0].status == "ok"
    for seen in (masks, keys):
        assert len(seen) == len({tuple(value.flatten().tolist()) for value in seen}) == 3 * 3


def logged(risk, gap, weight):
    return torch.tensor([[risk, 2 * risk], [gap, 2 * gap], [weight, 1 - weight]], dtype=torch.float64)


def test_curves_hold_epoch_means_and_a_moving_average():
    trained = TrainingResult(run_of(make_cell("DARN")))
    trained.close_epoch(torch.stack([logged(1, 1, 0.5), logged(float("nan"), 1, 0.5)]))
    assert (trained.diverged_in, trained.curves.risks) == (1, [])
    weights = [0.1, 0.5, 0.9, 0.2, 0.3, 0.4]
    expected = weights[0]
    for weight in weights:
        expected = 0.9 * expected + 0.1 * weight
    for epoch in (0, 1):
        steps = [logged(place, 10 * place, weights[3 * epoch + place]) for place in range(3)]
        trained.close_epoch(torch.stack(steps))
    assert trained.curves.groups == [["a"], ["b"]]
    assert trained.curves.risks == [[1, 2], [1, 2]]
    assert trained.curves.gaps == [[10, 20], [10, 20]]
    assert trained.curves.weights[1] == pytest.approx([expected, 1 - expected], rel=1e-5)
    assert trained.weights.tolist() == pytest.approx([expected, 1 - expected])


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
    drawn = np.random.default_rng(seed)
    truth = drawn.permutation(np.repeat([0, 1, 2], [50, 40, 30]))
    centred = np.array([[0, 0], [9, 0], [0, 9]])[truth] + drawn.random((120, 2))
    assert kmeans(torch.from_numpy(centred), 3, 10, key_of(seed)).tolist() == truth.tolist()
    points = torch.tensor([*range(7), 100]).double().unsqueeze(1)
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
    size = ComponentSpec("aggregator", "size", 1, "msda-bench", {})
    cells = at_seeds(replace(make_cell(split_sources=Splitting(clusters=2), epochs=1), aggregator=size))
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
