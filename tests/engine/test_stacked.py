"""Stacked runs have the draws and, up to rounding, the numbers of the runs alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from msda_bench.api import Aggregate, Aggregator, Backbone, InputSpec, Network, PluginError, Task, component
from msda_bench.engine import stacking
from msda_bench.engine.draws import Draws
from msda_bench.engine.model import Components
from msda_bench.engine.prepare import Preparer
from msda_bench.engine.runs import Run
from msda_bench.engine.stacked import Stacked
from msda_bench.engine.stacking import same_shapes
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry
from msda_bench.store.record import Record
from msda_bench.suite.cell import Cell, Ref
from msda_bench_builtin.schemes.adapt import Pooled
from tests.engine.conftest import METHODS, NoFiles

MakeCell = Callable[..., Cell]
STEPS = 40
"""Training is chaotic: a difference in the last bit grows to 3e-3 within a hundred steps."""


def short(cell: Cell, steps: int = STEPS) -> Cell:
    return replace(cell, training=cell.training.model_copy(update={"epochs": 1, "steps": steps}))


def trained(registry: Registry, cells: list[Cell], stack: int) -> dict[str, Record]:
    return {record.key: record for record in Trainer(registry, NoFiles(), "cpu", stack).train(cells)}


def close(one: Record, other: Record) -> None:
    assert one.status == other.status == "ok"
    assert one.curves is not None
    assert other.curves is not None
    for name in ("risks", "gaps", "weights"):
        mine, theirs = (torch.tensor(getattr(record.curves, name)) for record in (one, other))
        torch.testing.assert_close(mine, theirs, rtol=2e-4, atol=2e-5)
    assert one.bound == pytest.approx(other.bound, rel=1e-4)


def result(record: Record) -> tuple[Any, ...]:
    return record.status, record.outcome, record.curves, record.bound, record.validation


CASES = [
    *((method, {}) for method in METHODS if method != "SPECTRAL"),
    ("SPECTRAL", {"dataset": {"regression": True}, "mu": 0.001}),
    ("DARN", {"dataset": {"sparse": False}}),
    ("DARN", {"backbone": ("linear", {"bias_column": True})}),
    ("DARN", {"optimizer": ("adam", {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8})}),
    ("MDMN", {"optimizer": ("sgd", {"lr": 0.1, "momentum": 0.5, "weight_decay": 0.01})}),
]


@pytest.mark.parametrize(("method", "given"), CASES, ids=str)
def test_a_stack_trains_like_each_run_alone(
    registry: Registry, make_cell: MakeCell, method: str, given: dict[str, Any]
) -> None:
    """Seeds, targets, mu and gamma differ within the stack."""
    mu = given.get("mu", 0.1)
    rest = {name: value for name, value in given.items() if name != "mu"}
    cells = [
        short(make_cell(method, seed=seed, target=target, mu=mu * (1 + seed), **rest))
        for seed in (0, 1)
        for target in ("c", "a")
    ]
    alone = trained(registry, cells, 1)
    together = trained(registry, cells, 4)
    assert {record.provenance["stack"] for record in alone.values()} == {1}
    assert {record.provenance["stack"] for record in together.values()} == {4}
    for key, record in together.items():
        assert "stack_note" not in record.provenance
        close(record, alone[key])


@pytest.mark.parametrize("method", ["MDAN", "DARN"])
def test_gamma_may_differ_in_a_stack(registry: Registry, make_cell: MakeCell, method: str) -> None:
    plain = short(make_cell(method))
    assert plain.aggregator is not None
    cells = [replace(plain, aggregator=replace(plain.aggregator, params={"gamma": g})) for g in (0.2, 5.0)]
    alone, together = (trained(registry, cells, stack) for stack in (1, 2))
    assert {record.provenance["stack"] for record in together.values()} == {2}
    weights = [together[cell.key].curves.weights[0] for cell in cells]  # type: ignore[union-attr]
    assert weights[0] != weights[1]
    for key, record in together.items():
        close(record, alone[key])


@pytest.mark.parametrize("method", ["DARN", "MDMN", "DANN"])
def test_a_run_does_not_depend_on_other_runs_in_its_stack(registry: Registry, make_cell: MakeCell, method: str) -> None:
    """Bit for bit; up to rounding at another place in the stack, since vector and scalar CPU code round differently."""
    cells = [short(make_cell(method, seed=seed, target=target)) for target in ("a", "b", "c") for seed in range(3)]
    one = cells[4]
    companies = [[cells[0], one, cells[8], cells[7]], [cells[3], one, cells[6], cells[5]], [cells[1], one, cells[5]]]
    found = [trained(registry, company, 4)[one.key] for company in companies]
    assert [record.provenance["stack"] for record in found] == [4, 4, 4]
    assert result(found[0]) == result(found[1]) == result(found[2])
    for company in ([one, *cells[5:8]], [*cells[:3], one]):
        close(trained(registry, company, 4)[one.key], found[0])


@pytest.mark.parametrize("company", [[], [7], [1, 7], [7, 1, 2, 3]], ids=str)
def test_draws_and_initial_weights_depend_only_on_the_cell(
    registry: Registry, make_cell: MakeCell, company: list[int]
) -> None:
    """Bit for bit, alone or in a stack, in any place."""
    one = short(make_cell(seed=4), 5)
    for others in ([], [short(make_cell(seed=seed), 5) for seed in company]):
        runs = [run_of(registry, cell) for cell in (*others, one)]
        program = Stacked(runs, torch.device("cpu"))
        draws = Draws(runs[-1], program.keyed)
        found = [
            draws.rows(3),
            draws.keys(3),
            *(value[-1].detach() for part in program.trainable.values() for value in part.parameters),
        ]
        torch.manual_seed(1)
        if not others:
            expected = found
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(found, expected, strict=True))


def run_of(registry: Registry, cell: Cell) -> Run:
    components = Components.of(cell, registry)
    return Run(cell, components, Preparer(NoFiles(), torch.device("cpu")).prepare(components.dataset, cell))


def test_a_stack_of_80_trains_like_each_run_alone(registry: Registry, make_cell: MakeCell) -> None:
    cells = [short(make_cell(seed=seed), 5) for seed in range(80)]
    together = list(Trainer(registry, NoFiles(), "cpu", 80).train(cells))
    assert [record.provenance["stack"] for record in together] == [64] * 64 + [16] * 16
    alone = trained(registry, [cells[0], cells[40], cells[79]], 1)
    for record in together:
        if record.key in alone:
            close(record, alone[record.key])


def test_the_last_stack_is_padded_to_a_power_of_two(registry: Registry, make_cell: MakeCell) -> None:
    cells = [short(make_cell(seed=seed), 3) for seed in range(7)]
    records = list(Trainer(registry, NoFiles(), "cpu", 5).train(cells))
    assert sorted(record.key for record in records) == sorted(cell.key for cell in cells)
    assert [record.provenance["stack"] for record in records] == [4, 4, 4, 4, 4, 4, 4]


def test_cells_with_different_programs_are_not_stacked_together(registry: Registry, make_cell: MakeCell) -> None:
    cells = [short(make_cell(method, seed=seed), 3) for seed in (0, 1) for method in ("DARN", "MDAN", "SRC", "TAR")]
    records = trained(registry, cells, 8)
    assert records.keys() == {cell.key for cell in cells}
    assert {record.provenance["stack"] for record in records.values()} == {2}


def test_runs_with_different_shapes_are_not_stacked() -> None:
    usual = {"steps": 5, "batch": 9, "batches": 1, "k": 2, "width": 30}
    shapes = [usual, usual, *({**usual, name: usual[name] + 1} for name in usual)]
    runs: list[Any] = [
        SimpleNamespace(
            **one,
            groups=("a",) * one["k"],
            data=SimpleNamespace(x=torch.zeros(4, one["width"])),
            components=SimpleNamespace(scheme=Pooled()),
        )
        for one in shapes
    ]
    assert same_shapes(runs) == [runs[:2], *([run] for run in runs[2:])]


@component
class NanForOne(Aggregator):
    """Diverges where mu is 9."""

    name = "nan_for_one"

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        broken = torch.where(torch.as_tensor(mu) == 9, torch.nan, 1.0)
        return Aggregate((risks * broken).sum(), torch.full_like(risks, 1 / len(risks)) * broken, state)


@component
class Branches(Aggregator):
    """Reads tensor values and declares that it cannot be stacked."""

    name = "branches"
    stackable: ClassVar[bool] = False

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        worst = risks if risks.max() > risks.min() else risks * 2
        return Aggregate(worst.sum(), torch.full_like(risks, 1 / len(risks)), state)


@component
class BranchesInSecret(Branches):
    """Reads tensor values without declaring it."""

    name = "branches_in_secret"
    stackable: ClassVar[bool] = True


@component
class OwnNoise(Backbone):
    """Draws from torch's generator, which the runs of a stack would share."""

    name = "own_noise"

    def build(self, task: Task, input: InputSpec, files: Any = None) -> Network:
        features = nn.Sequential(nn.Linear(input.shape[0], 4), nn.Dropout(0.5))
        return Network(features, nn.Linear(4, task.outputs), 4)


@component
class OffSimplex(Aggregator):
    """Breaks its contract."""

    name = "off_simplex"

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        return Aggregate(risks.sum(), torch.ones_like(risks), state)


def strange(registry: Registry) -> Registry:
    classes = (NanForOne, Branches, BranchesInSecret, OwnNoise, OffSimplex)
    return Registry([*registry.entries, *(Entry(cls.kind, cls, "stranger", "0") for cls in classes)])


def swapped(cell: Cell, kind: str, name: str) -> Cell:
    return replace(cell, **{kind: Ref(kind, name, 1, "stranger", {})})


def test_a_diverging_run_does_not_affect_its_stack(registry: Registry, make_cell: MakeCell) -> None:
    cells = [swapped(short(make_cell(mu=mu), 6), "aggregator", "nan_for_one") for mu in (1.0, 9.0, 2.0, 3.0)]
    found = trained(strange(registry), cells, 4)
    alone = trained(strange(registry), cells, 1)
    assert [found[cell.key].status for cell in cells] == ["ok", "diverged", "ok", "ok"]
    assert found[cells[1].key].message == alone[cells[1].key].message
    close(found[cells[2].key], alone[cells[2].key])


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        ("aggregator", "branches", "aggregator 'branches' cannot be stacked (stackable = False)"),
        ("aggregator", "branches_in_secret", "torch.vmap refuses it: RuntimeError: vmap: It looks like you're"),
        ("backbone", "own_noise", "torch.vmap refuses it: RuntimeError: vmap: called random operation"),
    ],
)
def test_unstackable_runs_train_alone_with_a_note(
    registry: Registry, make_cell: MakeCell, kind: str, name: str, told: str
) -> None:
    cells = [swapped(short(make_cell(seed=seed, dataset={"sparse": False}), 4), kind, name) for seed in (0, 1)]
    stacked, alone = (trained(strange(registry), cells, stack) for stack in (4, 1))
    for key, record in stacked.items():
        assert record.provenance["stack"] == 1
        assert record.provenance["stack_note"].startswith(told)
        assert result(record) == result(alone[key])


def test_a_broken_contract_is_reported_in_a_stack_too(registry: Registry, make_cell: MakeCell) -> None:
    cells = [swapped(short(make_cell(seed=seed), 4), "aggregator", "off_simplex") for seed in (0, 1)]
    with pytest.raises(PluginError, match="left the simplex"):
        trained(strange(registry), cells, 2)


def test_out_of_memory_halves_the_stack_with_a_note(
    registry: Registry, make_cell: MakeCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from msda_bench.engine import train

    def small(runs: list[Any], device: torch.device) -> Any:
        if len(runs) > 2:
            raise torch.OutOfMemoryError("as a GPU would")
        return stacked(runs, device)

    stacked = train.Stacked
    monkeypatch.setattr(train, "Stacked", small)
    cells = [short(make_cell(seed=seed), 3) for seed in range(8)]
    records = list(Trainer(registry, NoFiles(), "cpu", 8).train(cells))
    assert [record.key for record in records] == [cell.key for cell in cells]
    assert {record.provenance["stack"] for record in records} == {2}
    assert {record.provenance["stack_note"] for record in records} == {"4 runs at once did not fit in memory"}


def test_the_cpu_stacks_only_on_request(registry: Registry, make_cell: MakeCell) -> None:
    cells = [short(make_cell(seed=seed), 3) for seed in (0, 1)]
    records = Trainer(registry, NoFiles(), "cpu").train(cells)
    assert [record.provenance["stack"] for record in records] == [1, 1]


class FakeMemory:
    """A device with 1000 bytes, of which one run takes some."""

    def __init__(self, each: int) -> None:
        self.each = each

    def free(self) -> int:
        return 1000

    def peak(self, action: Callable[[], object]) -> int:
        action()
        return self.each


@pytest.mark.parametrize(
    ("each", "wanted", "size"),
    [(100, None, 8), (90, None, 8), (1, None, 64), (5000, None, 1), (1, 20, 16), (300, 16, 2)],
)
def test_the_stack_size_follows_from_measured_memory(each: int, wanted: int | None, size: int) -> None:
    probed = []
    sizing = stacking.Sizing(torch.device("cuda"), wanted, FakeMemory(each))
    assert sizing.stacks
    assert sizing.size(lambda: probed.append(1)) == (size, None)
    assert probed == [1]


@pytest.mark.parametrize(("count", "size"), [(1, 1), (2, 2), (3, 4), (5, 8), (8, 8)])
def test_padding_repeats_the_last_run(count: int, size: int) -> None:
    assert stacking.padded(list(range(count))) == [*range(count), *[count - 1] * (size - count)]
