"""A component that writes into its inputs does not affect other runs of the split."""

import numpy as np
import pytest
import torch
from torch import nn

from msda_bench.api import component
from msda_bench.functional import SparseRows
from tests.engine.conftest import (
    OwnStep,
    Toy,
    at_seeds,
    backbone,
    discrepancy,
    make_cell,
    result,
    swapped,
    train,
    train_with_weights,
    trainer,
    validator,
)


def spoil(x):
    """Writes into examples, including through numpy, where torch's version counters do not notice."""
    values = x.values if isinstance(x, SparseRows) else x
    values.detach().numpy()[...] = 7
    if isinstance(x, SparseRows):
        x.columns.zero_()


def overwritten(view):
    for labels in view.source_labels:
        labels.copy_(1 - labels)
    for seen in (*view.source_features, *view.source_outputs, view.target_features, view.target_outputs):
        seen.zero_()
    return 0.5


VandalValidator = validator("vandal", overwritten)


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
    vandals = trainer(vandal, stack=stack)
    try:
        (spoilt,) = vandals.train([swapped(honest, vandal)])
    except (RuntimeError, ValueError):  # a stack may refuse it, and so may autograd
        assert vandal is not VandalValidator
    else:
        assert spoilt.validation.get("source_accuracy") is not None
        if vandal is VandalValidator:
            assert spoilt.validation == {"vandal": 0.5, **alone.validation}
    (after,) = vandals.train([honest])
    assert result(after) == result(alone)


def values(x):
    return x if isinstance(x, np.ndarray) else x.data


@pytest.mark.parametrize("sparse", [True, False])
def test_arrays_that_a_dataset_keeps_are_not_those_of_the_split(sparse):
    """Nor can its fit write into loaded arrays, which fails without damage."""
    kept, memory = [], {}

    @component
    class Remembering(Toy):
        name = "remembering"
        writes: bool = False

        def load(self, domain, files):
            data = memory.setdefault(domain, super().load(domain, files))
            kept.append(values(data.x))
            return data

        def fit(self, train):
            for array in (*map(values, train.values()), *(kept if self.writes else ())):
                array[...] = 0
            return self.keep

        def keep(self, _, x):
            kept.append(values(x))
            return x

    def wreck(_):
        for array in kept:
            if array.flags.writeable:
                array[...] = 0
        return 0.0

    honest, wrecking = swapped(make_cell(epochs=1), Remembering, sparse=sparse), validator("wrecking", wreck)
    (alone,) = train([honest], Remembering)
    memory.clear()
    vandals = trainer(Remembering, wrecking)
    list(vandals.train([swapped(honest, wrecking)]))
    (after,) = vandals.train([honest])
    assert result(after) == result(alone)
    vandals = trainer(Remembering)
    with pytest.raises(ValueError, match="read-only"):
        list(vandals.train([swapped(honest, Remembering, sparse=sparse, writes=True)]))
    (after,) = vandals.train([honest])
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

    def fit(self, train):
        labels = getattr(self, "labels", {})

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


@pytest.mark.parametrize("stack", [1, 2])
def test_a_validators_tensors_give_no_access_to_memory_of_other_runs_or_examples(stack):
    seen = []

    def look(view):
        seen.extend((*view.source_features, *view.source_outputs, *view.source_labels))
        seen.extend((view.target_features, view.target_outputs, view.mix(*torch.arange(4).split(2), 0.5)))
        return 0.0

    looking = validator("looking", look)
    train(at_seeds(swapped(make_cell(epochs=1), looking)), looking, stack=stack)
    assert len(seen) >= 2 * 9
    assert all(one.untyped_storage().nbytes() == one.nbytes and one._base is None for one in seen)
