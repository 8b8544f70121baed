"""A component that writes into its inputs does not affect other runs of the split."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from msda_bench.api import Array, DomainData, Validator, component
from msda_bench.engine.train import Trainer
from msda_bench.functional import SparseRows
from tests.engine.conftest import (
    NoFiles,
    OwnStep,
    Toy,
    backbone,
    discrepancy,
    installed,
    make_cell,
    result,
    swapped,
    train,
    train_with_weights,
)


def spoil(x):
    """Writes into examples, including through numpy, where torch's version counters do not notice."""
    values = x.values if isinstance(x, SparseRows) else x
    values.detach().numpy()[...] = 7
    if isinstance(x, SparseRows):
        x.columns.zero_()


@component
class VandalValidator(Validator):
    name = "vandal"

    def score(self, view):
        for labels in view.source_labels:
            labels.copy_(1 - labels)
        for seen in (*view.source_features, *view.source_outputs, view.target_features, view.target_outputs):
            seen.zero_()
        return 0.5


@component
class VandalScheme(OwnStep):
    name = "vandal"

    def step(self, parts, batch, state, phase):
        step = super().step(parts, batch, state, phase)
        spoil(batch.x)
        batch.y.copy_(1 - batch.y)
        batch.key.zero_()
        return step


class _Spoiling(nn.Module):
    def forward(self, x):
        dense = x.to_dense() if isinstance(x, SparseRows) else x.clone()
        spoil(x)
        return dense


VandalBackbone = backbone("vandal", lambda width, outputs: (_Spoiling(), nn.Linear(width, outputs), width))


def clearing(source, target):
    gaps = source.mean((1, 2)) - target.mean()
    source.detach().zero_()
    target.detach().zero_()
    return gaps.detach()


VandalDiscrepancy = discrepancy("vandal", clearing)


@pytest.mark.parametrize("stack", [1, 2])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("vandal", [VandalValidator, VandalScheme, VandalBackbone, VandalDiscrepancy])
def test_a_component_that_writes_into_its_input_does_not_change_other_cells(vandal, sparse, stack):
    honest = make_cell(dataset={"sparse": sparse}, epochs=1)
    (alone,) = train([honest], stack=stack)
    trainer = Trainer(installed(vandal), NoFiles(), "cpu", stack)
    try:
        (spoilt,) = trainer.train([swapped(honest, vandal)])
    except (RuntimeError, ValueError):  # a stack may refuse it, and so may autograd
        assert vandal is not VandalValidator
    else:
        assert spoilt.validation.get("source_accuracy") is not None
        if vandal is VandalValidator:
            assert spoilt.validation == {"vandal": 0.5, **alone.validation}
    (after,) = trainer.train([honest])
    assert result(after) == result(alone)


@component
class Remembering(Toy):
    name = "remembering"
    kept: ClassVar[list[Array]] = []
    memory: ClassVar[dict[str, DomainData]] = {}
    mapped: ClassVar[bool] = True

    def load(self, domain, files):
        data = self.memory.setdefault(domain, super().load(domain, files))
        self.kept.append(data.x if isinstance(data.x, np.ndarray) else data.x.data)
        return data

    def fit(self, train: Any) -> Any:
        for given in train.values():
            (given if isinstance(given, np.ndarray) else given.data)[...] = 0
        for array in self.kept if not self.mapped else ():
            array[...] = 0
        return self.keep

    def keep(self, _, x):
        if self.mapped:
            self.kept.append(x if isinstance(x, np.ndarray) else x.data)
        return x


@component
class Wrecking(Validator):
    name = "wrecking"

    def score(self, view):
        for array in Remembering.kept:
            if array.flags.writeable:
                array[...] = 0
        return 0.0


@pytest.mark.parametrize("sparse", [True, False])
def test_arrays_that_a_dataset_keeps_are_not_those_of_the_split(monkeypatch, sparse):
    """Nor can its fit write into loaded arrays, which fails without damage."""
    monkeypatch.setattr(Remembering, "kept", [])
    monkeypatch.setattr(Remembering, "memory", {})
    honest = swapped(make_cell(epochs=1), Remembering, sparse=sparse)
    (alone,) = train([honest], Remembering)
    monkeypatch.setattr(Remembering, "memory", {})
    trainer = Trainer(installed(Remembering, Wrecking), NoFiles(), "cpu")
    list(trainer.train([swapped(honest, Wrecking)]))
    (after,) = trainer.train([honest])
    assert result(after) == result(alone)
    trainer = Trainer(installed(Remembering), NoFiles(), "cpu")
    monkeypatch.setattr(Remembering, "mapped", False)
    with pytest.raises(ValueError, match="read-only"):
        list(trainer.train([honest]))
    monkeypatch.setattr(Remembering, "mapped", True)
    (after,) = trainer.train([honest])
    assert result(after) == result(alone)


@component
class Leaking(Toy):
    name = "leaking"
    sparse: bool = False

    def load(self, domain, files):
        data = super().load(domain, files)
        rows = {row.tobytes(): int(label) for row, label in zip(data.x, data.y, strict=True)}
        object.__setattr__(self, "labels", {**getattr(self, "labels", {}), **rows})
        return data

    def fit(self, train: Any) -> Any:
        labels: dict[bytes, int] = getattr(self, "labels", {})

        def leak(_, x):
            told = x.copy()
            told[:, 0] = [9 * labels.get(row.tobytes(), 0) for row in x]
            return told

        return leak


def test_labels_that_a_dataset_keeps_in_itself_do_not_reach_its_fit():
    """Inverting the target's labels does not change the weights."""
    clean, poisoned = (
        train_with_weights(swapped(make_cell(), Leaking, poison=poison), Leaking) for poison in (None, "c")
    )
    for seen in ("weights", "curves", "validation"):
        assert clean[seen] == poisoned[seen], seen


@component
class Looking(Validator):
    name = "looking"
    seen: ClassVar[list[torch.Tensor]] = []

    def score(self, view):
        self.seen.extend((*view.source_features, *view.source_outputs, *view.source_labels))
        self.seen.extend((view.target_features, view.target_outputs, view.mix(*torch.arange(4).split(2), 0.5)))
        return 0.0


@pytest.mark.parametrize("stack", [1, 2])
def test_a_validators_tensors_give_no_access_to_memory_of_other_runs_or_examples(stack):
    Looking.seen.clear()
    train([swapped(make_cell(seed=seed, epochs=1), Looking) for seed in range(2)], Looking, stack=stack)
    assert len(Looking.seen) >= 2 * 9
    assert all(seen.untyped_storage().nbytes() == seen.nbytes and seen._base is None for seen in Looking.seen)
