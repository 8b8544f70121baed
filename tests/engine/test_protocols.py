"""Equal steps, schedules, optimisers, clipping and averages, alone and in a stack."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from msda_bench.api import (
    Backbone,
    BagLinear,
    Batch,
    Discrepancy,
    Group,
    InputSpec,
    Network,
    Parts,
    Phase,
    PluginError,
    Scheme,
    Step,
    StepProgress,
    Task,
    component,
)
from msda_bench.engine import loop
from msda_bench.engine.fit import fit
from msda_bench.engine.model import Components
from msda_bench.engine.optim import clip_gradients
from msda_bench.engine.prepare import Preparer
from msda_bench.engine.runs import Run
from msda_bench.engine.schedule import lr_shares
from msda_bench.engine.single import Single
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry
from msda_bench.store.record import Record
from msda_bench.suite.cell import Cell, Ref
from msda_bench.suite.protocol import Protocol, Splitting
from tests.engine.conftest import METHODS, NoFiles, train_with_weights
from tests.engine.test_stacked import close, trained

MakeCell = Callable[..., Cell]
CPU = torch.device("cpu")
SGD = {"optimizer": {"sgd": {"lr": 0.1, "momentum": 0.5, "weight_decay": 0.01, "nesterov": True}}}
ADAM = {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.1}
ADADELTA = {"lr": 1.0, "rho": 0.9, "eps": 1e-6}
COSINE = {"schedule": {"cosine": {"to": 0.1}}, "warmup": 5}


def under(cell: Cell, **training: Any) -> Cell:
    return replace(cell, training=Protocol.model_validate(dict(cell.training) | training))


def run_of(registry: Registry, cell: Cell) -> Run:
    components = Components.of(cell, registry)
    return Run(cell, components, Preparer(NoFiles(), CPU).prepare(components.dataset, cell))


def record_of(registry: Registry, cell: Cell) -> Record:
    (record,) = Trainer(registry, NoFiles(), "cpu").train([cell])
    return record


PARITY: dict[str, dict[str, Any]] = {
    "adamw": {"optimizer": {"adamw": ADAM}},
    "adam with decay": {"optimizer": {"adam": ADAM}},
    "nesterov": SGD,
    "adadelta with decay": {"optimizer": {"adadelta": {**ADADELTA, "weight_decay": 0.01}}},
    "cosine and warm-up": COSINE,
    "step": {"schedule": {"step": {"at": [0.3, 0.6], "factor": 0.1}}},
    "polynomial": {"schedule": {"polynomial": {"a": 10.0, "b": 0.75}}, **SGD},
    "clip": {"clip": 0.05, **SGD},
    "rates by part": {"lr_factors": {"features": 0.1, "critic": 10.0}},
    "last epoch": {"average": {"over": "last_epoch"}},
    "ema": {"average": {"ema": 0.9}},
    "equal": {"epoch": "equal"},
}


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
@pytest.mark.parametrize("name", PARITY)
def test_a_stack_trains_like_each_run_alone(registry: Registry, make_cell: MakeCell, name: str, sparse: bool) -> None:
    """Compares test outputs, too, because they depend on the tested weights."""
    method = "DANN" if name == "equal" else "DARN"
    made = [
        make_cell(method, seed=seed, target=target, dataset={"sparse": sparse}) for seed, target in ((0, "c"), (1, "a"))
    ]
    cells = [under(cell, **({"epochs": 1, "steps": 30} | PARITY[name])) for cell in made]
    alone, together = trained(registry, cells, 1), trained(registry, cells, 2)
    assert {record.provenance["stack"] for record in together.values()} == {2}
    for key, record in together.items():
        close(record, alone[key])
        assert record.validation == pytest.approx(alone[key].validation, abs=0.02)


@pytest.mark.parametrize("name", [name for name in PARITY if name != "equal"])
def test_each_option_changes_what_is_learned(registry: Registry, make_cell: MakeCell, name: str) -> None:
    """Each option changes the result, and a second run gives identical bits."""
    plain = under(make_cell(), epochs=1, steps=12)
    weights = [
        train_with_weights(registry, NoFiles(), cell)["weights"]  # type: ignore[arg-type]
        for cell in (under(plain, **PARITY[name]), under(plain, **PARITY[name]), plain)
    ]
    assert weights[0] == weights[1]
    assert weights[0] != weights[2]


# Equal steps


@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_equally_many_steps_and_examples(
    registry: Registry, make_cell: MakeCell, method: str
) -> None:
    """60 training examples of each of two sources, in batches of 10; pooled schemes and oracles too."""
    regression = {"regression": True} if method == "SPECTRAL" else None
    run = run_of(registry, under(make_cell(method, dataset=regression), epoch="equal"))
    assert run.steps == 6
    assert run.batch * run.batches * len(run.groups) == 20
    assert record_of(registry, run.cell).timing["steps"] == 12


@pytest.mark.parametrize(
    ("given", "batches"), [({"split_sources": Splitting(clusters=3)}, 1), ({"labelled_target": 7}, 1), ({}, 1)], ids=str
)
def test_the_steps_are_those_of_the_largest_whole_source(
    registry: Registry, make_cell: MakeCell, given: dict[str, Any], batches: int
) -> None:
    run = run_of(registry, under(make_cell(**given), epoch="equal"))
    assert (run.steps, run.batches) == (6, batches)
    assert run_of(registry, under(make_cell("SRC", **given), epoch="equal")).steps == 6


def test_a_pool_with_labels_of_the_target_draws_a_batch_for_them(registry: Registry, make_cell: MakeCell) -> None:
    assert run_of(registry, under(make_cell("SRC", labelled_target=7), epoch="equal")).batches == 3


def test_the_schemes_own_rule_is_a_named_choice(registry: Registry, make_cell: MakeCell) -> None:
    assert [record_of(registry, make_cell(method)).timing["steps"] for method in ("SRC", "DARN")] == [24, 12]


@component
class Uneven(Scheme):
    """A group of one source, and one of the rest."""

    name = "uneven"

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        return (sources[:1], sources)

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        risks = parts.forward(batch).risks
        return Step(risks.mean(), risks)


def test_groups_that_cannot_see_equally_many_examples_are_refused(registry: Registry, make_cell: MakeCell) -> None:
    known = Registry([*registry.entries, Entry("scheme", Uneven, "tests", "0")])
    cell = replace(make_cell("SRC"), scheme=Ref("scheme", "uneven", 1, "tests", {}))
    assert record_of(known, cell).status == "ok"
    with pytest.raises(PluginError, match="hold 1 and 2 domains; add epoch: scheme to training"):
        record_of(known, under(cell, epoch="equal"))


@component
class PairsRows(Discrepancy):
    """The mean distance between rows with equal index; fails if the sides differ in size."""

    name = "pairs_rows"

    def build(self, feature_dim: int, k: int) -> nn.Module:
        return _PairsRows()


class _PairsRows(nn.Module):
    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return (source - target).square().mean((1, 2))


@pytest.mark.parametrize("stack", [1, 2])
def test_a_discrepancy_that_pairs_rows_works_with_a_pool(registry: Registry, make_cell: MakeCell, stack: int) -> None:
    known = Registry([*registry.entries, Entry("discrepancy", PairsRows, "tests", "0")])
    plain = under(make_cell("DANN"), epoch="equal", steps=3)
    cells = [replace(plain, seed=seed, discrepancy=Ref("discrepancy", "pairs_rows", 1, "tests", {})) for seed in (0, 1)]
    assert {record.status for record in Trainer(known, NoFiles(), "cpu", stack).train(cells)} == {"ok"}


# A number of steps


def test_steps_without_epochs_are_the_whole_training(registry: Registry, make_cell: MakeCell) -> None:
    """With six steps per epoch the last epoch is shorter, and the first two equal those of whole epochs."""
    cells = [under(make_cell(), epochs=None, steps=15), under(make_cell(), epochs=2)]
    counted, whole = (record_of(registry, cell) for cell in cells)
    assert counted.timing["steps"] == 15
    assert counted.curves is not None
    assert whole.curves is not None
    assert len(counted.curves.risks) == 3
    assert counted.curves.risks[:2] == whole.curves.risks
    assert counted.curves.weights[:2] == whole.curves.weights


def test_fewer_steps_than_an_epoch_can_be_trained(registry: Registry, make_cell: MakeCell) -> None:
    record = record_of(registry, under(make_cell(), epochs=None, steps=4, average={"over": "last_epoch"}))
    assert (record.status, record.timing["steps"]) == ("ok", 4)


# Schedules


def shares(steps: int, **given: Any) -> list[float] | None:
    return lr_shares(Protocol.model_validate({"epochs": 1, "batch": 1, "optimizer": "sgd", **given}), steps)


def test_without_a_schedule_there_are_no_rate_factors() -> None:
    assert shares(10) is None


@pytest.mark.parametrize(
    ("name", "params", "wanted"),
    [
        ("cosine", {"to": 0.0}, [1.0, 0.853553, 0.5, 0.146447]),
        ("cosine", {"to": 0.5}, [1.0, 0.926777, 0.75, 0.573223]),
        ("step", {"at": [0.5, 0.75], "factor": 0.1}, [1.0, 1.0, 0.1, 0.01]),
        ("polynomial", {"a": 10.0, "b": 0.75}, [1.0, 3.5**-0.75, 6.0**-0.75, 8.5**-0.75]),
    ],
)
def test_schedules_equal_their_formulas(name: str, params: dict[str, Any], wanted: list[float]) -> None:
    found = shares(4, schedule={name: params})
    assert found == pytest.approx(wanted, abs=1e-6)
    warmed = shares(8, schedule={name: params}, warmup=4)
    assert warmed == pytest.approx([0.2, 0.4, 0.6, 0.8, *wanted], abs=1e-6)


@pytest.mark.parametrize(("warmup", "rising"), [(3, 3), (0.5, 5), (0.25, 2), (1, 1), (99, 10)])
def test_warm_up_is_given_in_steps_or_as_a_share(warmup: float, rising: int) -> None:
    found = shares(10, warmup=warmup)
    assert found is not None
    assert len(found) == 10
    assert sum(share < 1 for share in found) == rising
    assert found == sorted(found)


@pytest.mark.parametrize("optimizer", ["adadelta", "sgd"])
@pytest.mark.parametrize("sparse", [True, False])
def test_steps_at_rate_zero_change_nothing(
    registry: Registry, make_cell: MakeCell, optimizer: str, sparse: bool
) -> None:
    """Holds for compiled, lazy and torch's optimizers."""
    settings = {"adadelta": ADADELTA, "sgd": {"lr": 0.1, "momentum": 0.0, "weight_decay": 0.0}}[optimizer]
    cell = under(make_cell(dataset={"sparse": sparse}), optimizer={optimizer: settings}, steps=4, epochs=None)
    stopped = {"schedule": {"step": {"at": [0.5], "factor": 0.0}}}
    found = [
        train_with_weights(registry, NoFiles(), under(cell, steps=steps, **more))["weights"]  # type: ignore[arg-type]
        for steps, more in ((4, {}), (8, stopped))
    ]
    assert found[0] == found[1]


# Optimisers


def test_each_part_has_its_learning_rate(registry: Registry, make_cell: MakeCell) -> None:
    """A part with a factor of 0 keeps its initial weights; the others change."""
    run = run_of(registry, under(make_cell(), lr_factors={"predictor": 0.0}, steps=3))
    program = Single(run, CPU)
    before = {name: [one.clone() for one in part.parameters] for name, part in program.trainable.items()}
    loop.Loop([run], program).epoch(0)
    same = {
        name: all(torch.equal(*pair) for pair in zip(before[name], part.parameters, strict=True))
        for name, part in program.trainable.items()
    }
    assert same == {"features": False, "predictor": True, "critic": False}


def _with_gradients(runs: int | None) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(3)
    for shape in ((4, 3), (4,), ()):
        value = torch.zeros(() if runs is None else (runs,)).new_zeros((*(() if runs is None else (runs,)), *shape))
        value.grad = torch.randn(value.shape, generator=generator)
        yield value


@pytest.mark.parametrize("most", [0.5, 2.5, 100.0])
def test_each_run_of_a_stack_is_clipped_separately(most: float) -> None:
    """Each run is clipped as torch clips a single run."""
    stacked = list(_with_gradients(3))
    runs = [[value[place].clone() for value in stacked] for place in range(3)]
    for place, run in enumerate(runs):
        for value, of in zip(run, stacked, strict=True):
            assert of.grad is not None
            value.grad = of.grad[place].clone()
        torch.nn.utils.clip_grad_norm_(run, most)
    clip_gradients(stacked, most, 3)
    for place, run in enumerate(runs):
        again = [value.detach().clone() for value in run]
        for one, value, of in zip(again, run, stacked, strict=True):
            assert of.grad is not None
            assert value.grad is not None
            one.grad = value.grad.clone()
            torch.testing.assert_close(of.grad[place], value.grad)
        clip_gradients(again, most * 2, None)
        assert all(torch.equal(one.grad, value.grad) for one, value in zip(again, run, strict=True))  # type: ignore[arg-type]


# Progress


@component
class Grows(Discrepancy):
    """A gap that equals the progress of training."""

    name = "grows"

    def build(self, feature_dim: int, k: int) -> nn.Module:
        return _Grows(k)


class _Grows(StepProgress):
    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return self.progress + 0 * (source.mean() + target.mean()) * torch.ones(self.k)


@pytest.mark.parametrize("stack", [1, 2])
def test_a_discrepancy_sees_the_progress_of_training(registry: Registry, make_cell: MakeCell, stack: int) -> None:
    known = Registry([*registry.entries, Entry("discrepancy", Grows, "tests", "0")])
    plain = under(make_cell(), epochs=2, steps=4)
    cells = [replace(plain, seed=seed, discrepancy=Ref("discrepancy", "grows", 1, "tests", {})) for seed in (0, 1)]
    for record in Trainer(known, NoFiles(), "cpu", stack).train(cells):
        assert record.curves is not None
        torch.testing.assert_close(torch.tensor(record.curves.gaps), torch.tensor([[1.5, 1.5], [5.5, 5.5]]) / 8)


# Averages


@pytest.mark.parametrize(("average", "first", "decay"), [({"over": "last_epoch"}, 6, None), ({"ema": 0.7}, 0, 0.7)])
def test_averaged_weights_are_tested(
    registry: Registry, make_cell: MakeCell, average: dict[str, Any], first: int, decay: float | None
) -> None:
    """Compares with the weights of twelve runs that end after each step."""
    after = [
        [
            torch.frombuffer(bytearray(one), dtype=torch.float32)
            for one in train_with_weights(registry, NoFiles(), cell)["weights"]
        ]  # type: ignore[arg-type]
        for cell in (under(make_cell(), epochs=None, steps=steps + 1) for steps in range(12))
    ]
    wanted = after[first]
    for seen, weights in enumerate(after[first + 1 :], 2):
        share = 1 / seen if decay is None else 1 - decay
        wanted = [old + share * (new - old) for old, new in zip(wanted, weights, strict=True)]
    cell = under(make_cell(), epochs=None, steps=12, average=average)
    found = train_with_weights(registry, NoFiles(), cell)["weights"]  # type: ignore[arg-type]
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(torch.frombuffer(bytearray(mine), dtype=torch.float32), theirs)


@component
class Normed(Backbone):
    """One layer with batch-norm."""

    name = "normed"

    def build(self, task: Task, input: InputSpec, files: Any = None) -> Network:
        return Network(nn.Sequential(BagLinear(input.shape[0], 4), nn.BatchNorm1d(4)), nn.Linear(4, task.outputs), 4)


def test_batch_norm_statistics_are_averaged_too(registry: Registry, make_cell: MakeCell) -> None:
    known = Registry([*registry.entries, Entry("backbone", Normed, "tests", "0")])
    plain = replace(make_cell("TAR"), backbone=Ref("backbone", "normed", 1, "tests", {}))
    means = []
    for training in ({"steps": 1}, {"steps": 2}, {"steps": 2, "average": {"over": "last_epoch"}}):
        program = Single(run_of(known, under(plain, epochs=None, **training)), CPU)
        fit([run_of(known, under(plain, epochs=None, **training))], program)
        (mean, _) = (each for each in program.averaged[-2:])
        means.append(mean.clone())
    torch.testing.assert_close(means[2], (means[0] + means[1]) / 2)
