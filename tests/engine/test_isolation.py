"""A component that writes into its inputs does not affect other runs of the split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from msda_bench.api import (
    Array,
    Backbone,
    Batch,
    Discrepancy,
    DomainData,
    Files,
    InputSpec,
    Network,
    Parts,
    Phase,
    Scheme,
    Step,
    Task,
    ValidationView,
    Validator,
    component,
)
from msda_bench.engine.train import Trainer
from msda_bench.functional import SparseRows
from msda_bench.plugins import Entry, Registry
from msda_bench.store.record import Record
from msda_bench.suite.cell import Cell, Ref
from tests.engine.conftest import WIDTH, NoFiles, Toy, train_with_weights

MakeCell = Callable[..., Cell]


def spoil(x: Tensor | SparseRows) -> None:
    """Writes into examples, including through numpy, where torch's version counters do not notice."""
    values = x.values if isinstance(x, SparseRows) else x
    values.detach().numpy()[...] = 7
    if isinstance(x, SparseRows):
        x.columns.zero_()


@component
class VandalValidator(Validator):
    """Inverts the labels that it sees, and zeroes everything else."""

    name = "vandal"

    def score(self, view: ValidationView) -> float:
        for labels in view.source_labels:
            labels.copy_(1 - labels)
        for seen in (*view.source_features, *view.source_outputs, view.target_features, view.target_outputs):
            seen.zero_()
        return 0.5


@component
class VandalScheme(Scheme):
    """Overwrites its batch after reading it."""

    name = "vandal"
    uses_discrepancy = False
    uses_mu = False

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        risks = parts.forward(batch).risks
        spoil(batch.x)
        batch.y.copy_(1 - batch.y)
        batch.key.zero_()
        return Step(risks.sum(), risks)


class _Spoiling(nn.Module):
    def forward(self, x: Tensor | SparseRows) -> Tensor:
        dense = x.to_dense() if isinstance(x, SparseRows) else x.clone()
        spoil(x)
        return dense


@component
class VandalBackbone(Backbone):
    """Overwrites its input, in training and in evaluation."""

    name = "vandal"

    def build(self, task: Task, input: InputSpec, files: Any = None) -> Network:
        return Network(_Spoiling(), nn.Linear(WIDTH, task.outputs), WIDTH)


class _Clearing(nn.Module):
    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        gaps = source.mean((1, 2)) - target.mean()
        source.detach().zero_()
        target.detach().zero_()
        return gaps.detach()


@component
class VandalDiscrepancy(Discrepancy):
    """Zeroes the features that it receives."""

    name = "vandal"

    def build(self, feature_dim: int, k: int) -> nn.Module:
        return _Clearing()


VANDALS: tuple[type[Any], ...] = (VandalValidator, VandalScheme, VandalBackbone, VandalDiscrepancy)


def result(record: Record) -> tuple[Any, ...]:
    return record.key, record.status, record.outcome, record.curves, record.bound, record.validation


def with_strangers(registry: Registry, *classes: type[Any]) -> Registry:
    return Registry([*registry.entries, *(Entry(cls.kind, cls, "stranger", "1") for cls in classes)])


def swapped(cell: Cell, cls: type[Any], **params: Any) -> Cell:
    ref = Ref(cls.kind, cls.name, 1, "stranger", cls(**params).params())
    if cls.kind == "validator":
        return replace(cell, validators=(ref, *cell.validators))
    bare = {"discrepancy": None, "aggregator": None} if cls.kind == "scheme" else {}
    return replace(cell, **{cls.kind: ref, **bare})


@pytest.mark.parametrize("stack", [1, 2])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("vandal", VANDALS, ids=lambda cls: cls.kind)
def test_a_component_that_writes_into_its_input_does_not_change_other_cells(
    registry: Registry, make_cell: MakeCell, vandal: type[Any], *, sparse: bool, stack: int
) -> None:
    known, honest = with_strangers(registry, vandal), make_cell(dataset={"sparse": sparse})
    (alone,) = Trainer(known, NoFiles(), "cpu", stack).train([honest])
    trainer = Trainer(known, NoFiles(), "cpu", stack)
    try:
        (spoilt,) = trainer.train([swapped(honest, vandal)])
    except (RuntimeError, ValueError):  # a stack may refuse it, and so may autograd
        assert vandal is not VandalValidator
    else:
        assert spoilt.validation.get("source_accuracy") is not None
    (after,) = trainer.train([honest])
    assert result(after) == result(alone)


def test_a_validator_that_writes_into_its_view_does_not_change_the_next(
    registry: Registry, make_cell: MakeCell
) -> None:
    known, honest = with_strangers(registry, VandalValidator), make_cell()
    both = swapped(honest, VandalValidator)
    (alone,), (beside,) = (Trainer(known, NoFiles(), "cpu").train([cell]) for cell in (honest, both))
    assert beside.validation == {"vandal": 0.5, **alone.validation}


@component
class Remembering(Toy):
    """Keeps the arrays that it loads and maps, and overwrites them in the next fit."""

    name = "remembering"
    kept: ClassVar[list[Array]] = []
    memory: ClassVar[dict[str, DomainData]] = {}
    mapped: ClassVar[bool] = True

    def load(self, domain: str, files: Files) -> DomainData:
        data = self.memory.setdefault(domain, super().load(domain, files))
        self.kept.append(data.x if isinstance(data.x, np.ndarray) else data.x.data)
        return data

    def fit(self, train: Any) -> Any:
        for given in train.values():
            (given if isinstance(given, np.ndarray) else given.data)[...] = 0
        for array in self.kept if not self.mapped else ():
            array[...] = 0
        return self.keep

    def keep(self, _: str, x: Any) -> Any:
        if self.mapped:
            self.kept.append(x if isinstance(x, np.ndarray) else x.data)
        return x


@component
class Wrecking(Validator):
    """Overwrites the arrays that its dataset has kept."""

    name = "wrecking"

    def score(self, view: ValidationView) -> float:
        for array in Remembering.kept:
            if array.flags.writeable:
                array[...] = 0
        return 0.0


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(Remembering, "kept", [])
    monkeypatch.setattr(Remembering, "memory", {})
    return monkeypatch


@pytest.mark.parametrize("sparse", [True, False])
def test_arrays_that_a_dataset_keeps_are_not_those_of_the_split(
    registry: Registry, make_cell: MakeCell, forgetful: pytest.MonkeyPatch, *, sparse: bool
) -> None:
    known = with_strangers(registry, Remembering, Wrecking)
    honest = swapped(make_cell(), Remembering, sparse=sparse)
    (alone,) = Trainer(known, NoFiles(), "cpu").train([honest])
    forgetful.setattr(Remembering, "memory", {})
    trainer = Trainer(known, NoFiles(), "cpu")
    list(trainer.train([swapped(honest, Wrecking)]))
    (after,) = trainer.train([honest])
    assert result(after) == result(alone)


@pytest.mark.parametrize("sparse", [True, False])
def test_a_fit_that_writes_into_loaded_arrays_fails_without_damage(
    registry: Registry, make_cell: MakeCell, forgetful: pytest.MonkeyPatch, *, sparse: bool
) -> None:
    known = with_strangers(registry, Remembering)
    honest = swapped(make_cell(), Remembering, sparse=sparse)
    (alone,) = Trainer(known, NoFiles(), "cpu").train([honest])
    trainer = Trainer(known, NoFiles(), "cpu")
    forgetful.setattr(Remembering, "mapped", False)
    with pytest.raises(ValueError, match="read-only"):
        list(trainer.train([honest]))
    forgetful.setattr(Remembering, "mapped", True)
    (after,) = trainer.train([honest])
    assert result(after) == result(alone)


@component
class Leaking(Toy):
    """Keeps loaded labels on the instance, so that the map of `fit` can write them into the examples."""

    name = "leaking"
    sparse: bool = False

    def load(self, domain: str, files: Files) -> DomainData:
        data = super().load(domain, files)
        rows = {row.tobytes(): int(label) for row, label in zip(data.x, data.y, strict=True)}
        object.__setattr__(self, "labels", {**getattr(self, "labels", {}), **rows})
        return data

    def fit(self, train: Any) -> Any:
        labels: dict[bytes, int] = getattr(self, "labels", {})

        def leak(_: str, x: Array) -> Array:
            told = x.copy()
            told[:, 0] = [9 * labels.get(row.tobytes(), 0) for row in x]
            return told

        return leak


def test_labels_that_a_dataset_keeps_in_itself_do_not_reach_its_fit(registry: Registry, make_cell: MakeCell) -> None:
    """Inverting the target's labels does not change the weights."""
    known = with_strangers(registry, Leaking)
    clean, poisoned = (
        train_with_weights(known, NoFiles(), swapped(make_cell(), Leaking, poison=poison)) for poison in (None, "c")
    )
    for seen in ("weights", "curves", "validation"):
        assert clean[seen] == poisoned[seen], seen


def test_a_view_exposes_no_memory_of_other_runs(registry: Registry, make_cell: MakeCell) -> None:
    """A validator's tensors give no access to memory of other runs or other examples."""
    seen: list[Tensor] = []

    @component
    class Looking(Validator):
        """Keeps every view that it receives."""

        name = "looking"

        def score(self, view: ValidationView) -> float:
            seen.extend((*view.source_features, *view.source_outputs, *view.source_labels))
            seen.extend((view.target_features, view.target_outputs, view.mix(*torch.arange(4).split(2), 0.5)))
            return 0.0

    known = with_strangers(registry, Looking)
    for stack in (1, 2):
        cells = [swapped(make_cell(seed=seed), Looking) for seed in range(2)]
        list(Trainer(known, NoFiles(), "cpu", stack).train(cells))
    assert len(seen) >= 4 * 9
    assert all(one.untyped_storage().nbytes() == one.nbytes and one._base is None for one in seen)
