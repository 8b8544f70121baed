"""Stacked runs have the draws and, up to rounding, the numbers of the runs alone."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from msda_bench.api import Dataset, DomainData, InputSpec, Task, component
from msda_bench.engine import stacking
from msda_bench.engine import train as training
from msda_bench.engine.model import Components
from msda_bench.engine.stacked import Stacked
from msda_bench.suite.protocol import Splitting
from tests.engine.conftest import (
    METHODS,
    aggregator,
    at_seeds,
    backbone,
    close,
    installed,
    make_cell,
    result,
    run_of,
    stacked,
    swapped,
    train,
    trainer,
)
from tests.engine.test_data import Cropped
from tests.engine.test_hooks import Viewed
from tests.strangers.heads import Heads
from tests.strangers.source_free import SourceFree
from tests.strangers.teacher import Teacher

ADAM = {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.1}
SGD = {"optimizer": {"sgd": {"lr": 0.1, "momentum": 0.5, "weight_decay": 0.01, "nesterov": True}}}
OPTIONS = {
    "adam with decay": {"optimizer": {"adam": ADAM}},
    "adamw": {"optimizer": {"adamw": ADAM}},
    "nesterov": SGD,
    "adadelta with decay": {"optimizer": {"adadelta": {"weight_decay": 0.01}}},
    "cosine and warm-up": {"schedule": {"cosine": {"to": 0.1}}, "warmup": 5},
    "polynomial": {"schedule": {"polynomial": {"a": 10.0, "b": 0.75}}, **SGD},
    "clip": {"clip": 0.05},
    "rates by part": {"lr_factors": {"features": 0.1, "critic": 10.0}},
    "last epoch": {"average": {"over": "last_epoch"}},
    "ema": {"average": {"ema": 0.9}},
    "bf16": {"precision": "bf16"},
}
CASES = {
    **{method: (method, {}) for method in METHODS if method != "SPECTRAL"},
    "SPECTRAL": ("SPECTRAL", {"dataset": {"regression": True}, "mu": 0.001}),
    "dense": ("DARN", {"dataset": {"sparse": False}}),
    "linear": ("DARN", {"backbone": ("linear", {"bias_column": True})}),
    "sizes by domain": ("DARN", {"dataset": {"train": {"a": 30, "default": 0.5}, "target_train": 20, "test": 0.1}}),
    "split": ("DARN", {"split_sources": Splitting(clusters=4)}),
    "labelled": ("DARN", {"labelled_target": 12}),
    "equal": ("DANN", {"epoch": "equal"}),
    **{name: ("DARN", given) for name, given in OPTIONS.items() if name != "bf16"},
}


def arrays_of(record, name):
    return dict(np.load(io.BytesIO(record.arrays[name]), allow_pickle=False))


@pytest.mark.parametrize("name", CASES)
def test_a_stack_trains_like_each_run_alone(name):
    """Seeds, targets, mu and gamma differ within the stack; what is tested depends on averaged weights."""
    method, given = CASES[name]
    given = {"mu": 0.1, "epochs": 2, "steps": 6} | given
    cells = [
        make_cell(method, **given | {"seed": seed, "target": target, "mu": given["mu"] * (1 + seed)})
        for seed, target in ((0, "c"), (1, "a"))
    ]
    cells = [replace(cell, keep=("predictions",)) for cell in cells]
    if (aggregator := cells[0].aggregator) and "gamma" in aggregator.params:
        cells[1] = replace(cells[1], aggregator=replace(aggregator, params=aggregator.params | {"gamma": 3.0}))
    for record, alone in zip(stacked(cells), train(cells), strict=True):
        assert "stack_note" not in record.provenance
        assert alone.provenance["stack"] == 1
        close(record, alone)
        outputs, of_alone = (arrays_of(run, "predictions")["outputs"] for run in (record, alone))
        np.testing.assert_allclose(outputs, of_alone, rtol=0.01, atol=0.005)


@component
class Windows(Dataset):
    """Signals whose ends are padded, in three domains."""

    name = "windows"
    domains = ("a", "b", "c")
    task = Task("classification", 2)
    input = InputSpec((4, 12), mask=2)
    train: int = 60

    def load(self, domain, files):
        rng = np.random.default_rng(self.domains.index(domain))
        y, known = rng.integers(0, 2, 150), np.arange(12) < rng.integers(6, 13, (150, 1, 1))
        x = np.sin(np.arange(12) * np.where(y, 2, 1)[:, None, None] + rng.normal(size=(150, 2, 1))) * known
        return DomainData(np.concatenate([x, known.repeat(2, 1)], 1).astype(np.float32), y)


@pytest.mark.parametrize("norm", ["batch", "domain"])
@pytest.mark.parametrize("method", ["DARN", "MDMN"])
def test_a_stack_of_networks_for_signals_trains_like_each_run_alone(method, norm):
    network = ("convnet1d", {"channels": (4, 8), "kernel": 3, "norm": norm})
    cells = [
        swapped(make_cell(method, backbone=network, seed=seed, target=target, steps=8), Windows)
        for seed, target in ((0, "c"), (1, "a"))
    ]
    for record, alone in zip(stacked(cells, Windows), train(cells, Windows), strict=True):
        assert "stack_note" not in record.provenance
        close(record, alone)


Normed = backbone(
    "normed",
    lambda width, outputs: (nn.Sequential(nn.Linear(width, 4), nn.BatchNorm1d(4)), nn.Linear(4, outputs), 4),
)


STAGES = {"train": {}, "adapt": {"lr_factors": {"features": 0.1}}}


@pytest.mark.parametrize(
    ("stranger", "options"),
    {Heads: {}, Teacher: {}, SourceFree: {"stages": STAGES}, Cropped: {}, Normed: {}}.items(),
)
def test_a_stack_of_strangers_trains_like_each_run_alone(stranger, options):
    network = ("convnet", {"channels": (4, 8), "hidden": (8,)}) if stranger is Cropped else ("mlp", {"hidden": [8]})
    known = (stranger,) if stranger.kind == "dataset" else (stranger, Viewed)
    cells = []
    for seed, target in ((0, "c"), (1, "a")):
        cell = make_cell("DARN", backbone=network, seed=seed, target=target, steps=8, **options)
        if stranger is not Cropped:
            cell = swapped(cell, Viewed, sparse=stranger is not Normed)
        cells.append(swapped(cell, stranger))
    for record, alone in zip(stacked(cells, *known), train(cells, *known), strict=True):
        close(record, alone)
        assert record.outcome.n_correct == pytest.approx(alone.outcome.n_correct, abs=2)


@pytest.mark.parametrize("stack", [1, 2])
@pytest.mark.parametrize("method", ["DARN", "MDMN"])
def test_bf16_learns_with_different_rounding(method, stack):
    cells = at_seeds(make_cell(method, epochs=8))
    coarse = [replace(cell, training=cell.training.model_copy(update=OPTIONS["bf16"])) for cell in cells]
    for record, exact in zip(train(coarse, stack=stack), train(cells, stack=stack), strict=True):
        assert record.provenance["stack"] == stack
        assert record.outcome.n_correct > 55
        assert record.curves.risks != exact.curves.risks
        assert record.curves.risks[0] == pytest.approx(exact.curves.risks[0], rel=0.1)


@pytest.mark.parametrize(
    ("method", "stranger"),
    [("DARN", None), ("MDMN", None), ("DANN", None), ("DARN", Heads), ("DARN", Teacher), ("DARN", SourceFree)],
)
def test_a_run_does_not_depend_on_other_runs_in_its_stack(method, stranger):
    """Bit for bit; up to rounding at another place in the stack, since vector and scalar CPU code round differently."""
    cells = [make_cell(method, seed=seed, target=target, steps=5) for seed in range(3) for target in "abc"]
    cells = [swapped(cell, stranger) for cell in cells] if stranger else cells
    known = (stranger,) if stranger else ()
    run = cells[4]

    def beside(*company):
        (record,) = (record for record in train([*company], *known, stack=4) if record.key == run.key)
        assert record.provenance["stack"] == 4
        return record

    found = beside(cells[0], run, cells[8], cells[7])
    assert result(beside(cells[3], run, cells[6], cells[5])) == result(found)
    assert result(beside(cells[1], run, cells[5])) == result(found)
    close(beside(run, *cells[5:8]), found)


@pytest.mark.parametrize("stack", [1, 2])
def test_kept_arrays_are_of_the_tested_model_with_its_statistics_and_without_counters_and_keys(stack):
    keep = ("predictions", "weights")
    cells = at_seeds(swapped(make_cell("DARN", epochs=1, dataset={"sparse": False}), Normed))
    records = train([replace(cell, keep=keep) for cell in cells], Normed, stack=stack)
    kept = []
    for record in records:
        arrays = {name: arrays_of(record, name) for name in keep}
        assert (arrays["predictions"]["label"] == arrays["predictions"]["predicted"]).sum() == record.outcome.n_correct
        layers = ("features.0", "features.1", "predictor")
        assert {name for name in arrays["weights"] if "critic" not in name} == {
            *(f"{layer}.{name}" for layer in layers for name in ("weight", "bias")),
            *("features.1.running_mean", "features.1.running_var"),
        }
        assert {value.dtype for value in arrays["weights"].values()} == {np.dtype("float32")}
        kept.append(arrays["weights"])
    assert any((kept[0][name] != kept[1][name]).any() for name in kept[0])


def test_stacks_are_powers_of_two_of_like_programs_and_at_most_64():
    cells = at_seeds(make_cell(epochs=1, steps=2), 67)
    assert [record.provenance["stack"] for record in train(cells, stack=80)] == [64] * 64 + [4] * 3
    mixed = [cell for method in ("DARN", "MDAN", "SRC", "TAR") for cell in at_seeds(make_cell(method, steps=2))]
    mixed += at_seeds(make_cell(steps=2, split_sources=Splitting(clusters=4)), 3)
    mixed += [make_cell(steps=2, split_sources=Splitting(clusters=2))]
    assert [record.provenance["stack"] for record in train(mixed, stack=8)] == [2] * 8 + [4] * 3 + [1]
    padded = train(cells[:7], stack=5)
    assert [record.provenance["stack"] for record in padded] == [4] * 7
    assert run_of(make_cell(epochs=5)).of_steps(3).all_steps == 3  # of the run that is tried first
    alone = train(cells[:2], stack=None)
    assert [record.provenance["stack"] for record in alone] == [1, 1]  # the CPU stacks only on request


@pytest.mark.parametrize("given", [{"epochs": 1}, {"batch": "all", "steps": 2}], ids=str)
def test_runs_whose_shapes_depend_on_their_data_are_stacked_with_their_like(given):
    """The steps of a pool and a batch of all follow from the sizes of the target's sources."""
    cells = [
        make_cell("SRC", dataset={"train": {"a": 30, "default": 60}}, target=target, seed=seed, **given)
        for target in "ac"
        for seed in (0, 1)
    ]
    assert [record.provenance["stack"] for record in train(cells, stack=4)] == [2] * 4


def equal(risks):
    return torch.full_like(risks, 1 / len(risks))


def broken_at_9(risks, mu):
    broken = torch.where(torch.as_tensor(mu) == 9, torch.nan, 1.0)
    return (risks * broken).sum(), equal(risks) * broken


def branching(risks, mu):
    return (risks if risks.max() > risks.min() else risks * 2).sum(), equal(risks)


NanForOne = aggregator("nan_for_one", broken_at_9)
Branches = aggregator("branches", branching, stackable=False)
BranchesInSecret = aggregator("branches_in_secret", branching)
OwnNoise = backbone(  # draws from torch's generator, which the runs of a stack would share
    "own_noise",
    lambda width, outputs: (nn.Sequential(nn.Linear(width, 4), nn.Dropout(0.5)), nn.Linear(4, outputs), 4),
)


def test_a_diverging_run_does_not_affect_its_stack():
    cells = [swapped(make_cell(mu=mu, steps=3), NanForOne) for mu in (1.0, 9.0, 2.0, 3.0)]
    together, alone = stacked(cells, NanForOne), train(cells, NanForOne)
    assert [record.status for record in together] == ["ok", "diverged", "ok", "ok"]
    assert together[1].message == alone[1].message
    close(together[2], alone[2])


@pytest.mark.parametrize(
    ("stranger", "told"),
    {
        Branches: "aggregator 'branches' cannot be stacked (stackable = False)",
        BranchesInSecret: "torch.vmap refuses it: RuntimeError: vmap: It looks like you're",
        OwnNoise: "torch.vmap refuses it: RuntimeError: vmap: called random operation",
    }.items(),
)
def test_unstackable_runs_train_alone_with_a_note(stranger, told):
    cells = at_seeds(swapped(make_cell(dataset={"sparse": False}, steps=2), stranger))
    for record, alone in zip(train(cells, stranger, stack=4), train(cells, stranger), strict=True):
        assert record.provenance["stack"] == 1
        assert record.provenance["stack_note"].startswith(told)
        assert result(record) == result(alone)


def test_out_of_memory_halves_the_stack_with_a_note(monkeypatch):
    def small(runs, device):
        if len(runs) > 2:
            raise torch.OutOfMemoryError("as a GPU would")
        return Stacked(runs, device)

    monkeypatch.setattr(training, "Stacked", small)
    cells = at_seeds(make_cell(steps=2), 8)
    records = list(trainer(stack=8).train(cells))
    assert [record.key for record in records] == [cell.key for cell in cells]
    assert {record.provenance["stack"] for record in records} == {2}
    assert {record.provenance["stack_note"] for record in records} == {"4 runs at once did not fit in memory"}


class FakeMemory:
    """A device with 1000 bytes, of which one run takes some."""

    def __init__(self, taken):
        self.taken = taken

    def free(self):
        return 1000

    def peak(self, action):
        action()
        return self.taken


@pytest.mark.parametrize(
    ("taken", "wanted", "size"),
    [(100, None, 8), (90, None, 8), (1, None, 64), (5000, None, 1), (1, 20, 16), (300, 16, 2)],
)
def test_the_stack_size_follows_from_measured_memory(taken, wanted, size):
    probed = []
    sizing = stacking.Sizing(torch.device("cuda"), wanted, FakeMemory(taken))
    assert sizing.stacks
    components = Components.of(make_cell(), installed())
    assert sizing.size(components, lambda: probed.append(1)) == (size, None)
    assert probed == [1]


@pytest.mark.parametrize(("wanted", "size"), [(None, 1), (4, 4)])
def test_networks_that_convolve_are_stacked_only_on_request(wanted, size):
    cell = swapped(make_cell(backbone=("convnet", {"channels": (4,), "hidden": ()})), Cropped)
    before = torch.get_rng_state()
    sizing = stacking.Sizing(torch.device("cuda"), wanted, FakeMemory(1))
    assert sizing.size(Components.of(cell, installed(Cropped)), lambda: None) == (size, None)
    assert torch.equal(torch.get_rng_state(), before)
