"""Labelled target examples form a source; no other target label affects training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from msda_bench.data.splits import split
from msda_bench.engine.model import Components
from msda_bench.engine.prepare import Preparer
from msda_bench.engine.runs import Run
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell
from msda_bench.suite.protocol import Splitting
from tests.engine.conftest import METHODS, NoFiles, Toy, train_with_weights

MakeCell = Callable[..., Cell]
LABELS = 12
HONEST = [name for name in METHODS if name != "TAR"]
SEEN = ("weights", "curves", "bound", "validation")


def labelled_rows(count: int = LABELS) -> tuple[int, ...]:
    """The rows of the labelled target examples."""
    return tuple(split(Toy(), "c", {"c": 150}, seed=0)["c"].train[:count].tolist())


@pytest.mark.parametrize("method", HONEST)
@pytest.mark.parametrize("regression", [False, True])
def test_other_target_labels_do_not_affect_training(
    registry: Registry, files: NoFiles, make_cell: MakeCell, method: str, *, regression: bool
) -> None:
    clean = {"regression": regression}
    poisoned = {**clean, "poison": "c", "spared": labelled_rows()}
    cells = (make_cell(method, dataset=data, mu=0.001, labelled_target=LABELS) for data in (clean, poisoned))
    one, other = (train_with_weights(registry, files, cell) for cell in cells)
    assert one["outcome"] != other["outcome"]
    assert {name for name in SEEN if one[name] != other[name]} == set()


@pytest.mark.parametrize("method", ["SRC", "DARN", "MDMN"])
def test_labelled_target_examples_affect_training(
    registry: Registry, files: NoFiles, make_cell: MakeCell, method: str
) -> None:
    spared = tuple(set(range(150)) - set(labelled_rows()))
    poisoned = {"poison": "c", "spared": spared}
    cells = (make_cell(method, dataset=data, labelled_target=LABELS) for data in ({}, poisoned))
    one, other = (train_with_weights(registry, files, cell) for cell in cells)
    assert one["weights"] != other["weights"]


@pytest.mark.parametrize("method", HONEST)
def test_the_record_names_the_labelled_target(
    registry: Registry, files: NoFiles, make_cell: MakeCell, method: str
) -> None:
    cells = [make_cell(method, labelled_target=LABELS), make_cell(method)]
    more, plain = Trainer(registry, files, "cpu").train(cells)
    assert (more.target_labels, more.cell["labelled_target"]) == (True, LABELS)
    assert (plain.target_labels, plain.cell.get("labelled_target")) == (False, None)
    assert more.curves is not None
    pooled = METHODS[method][0] == "pooled"
    assert more.curves.groups == ([["a", "b", "c/labelled"]] if pooled else [["a"], ["b"], ["c/labelled"]])


def test_the_effective_sample_size_accounts_for_few_labels(
    registry: Registry, files: NoFiles, make_cell: MakeCell
) -> None:
    (record,) = Trainer(registry, files, "cpu").train([make_cell("MDAN", labelled_target=LABELS)])
    assert record.curves is not None
    first, second, third = record.curves.weights[-1]
    expected = 1 / (first**2 / 60 + second**2 / 60 + third**2 / LABELS)
    assert record.bound["effective_sample_size"] == pytest.approx(expected, rel=1e-4)


def run_of(registry: Registry, cell: Cell, **params: Any) -> Run:
    prepared = Preparer(NoFiles(), torch.device("cpu")).prepare(Toy(**params), cell)
    return Run(cell, Components.of(cell, registry), prepared)


def test_labelled_examples_are_shared_by_methods_and_nested(registry: Registry, make_cell: MakeCell) -> None:
    runs = [run_of(registry, make_cell(method, labelled_target=LABELS)) for method in ("SRC", "DARN")]
    rows = [run.data.rows["c/labelled"].tolist() for run in runs]
    assert rows[0] == rows[1] == list(range(120, 120 + LABELS))
    fewer = run_of(registry, make_cell(labelled_target=5))
    assert fewer.data.rows["c/labelled"].tolist() == rows[0][:5]
    assert (fewer.data.y[120:] >= 0).nonzero().flatten().tolist() == [0, 1, 2, 3, 4]


def test_labelled_examples_stay_unlabelled_training_data_and_leave_the_test(
    registry: Registry, make_cell: MakeCell
) -> None:
    more, plain = (run_of(registry, make_cell(labelled_target=count), sparse=False) for count in (LABELS, 0))
    assert torch.equal(more.data.rows["c"], plain.data.rows["c"])
    assert isinstance(more.prepared.test.x, torch.Tensor)
    assert isinstance(plain.prepared.test.x, torch.Tensor)
    assert torch.equal(more.prepared.test.x, plain.prepared.test.x)
    assert torch.equal(more.prepared.test.y, plain.prepared.test.y)


def test_a_pool_includes_the_labelled_target(registry: Registry, make_cell: MakeCell) -> None:
    pooled, apart = (run_of(registry, make_cell(method, labelled_target=40)) for method in ("SRC", "DARN"))
    assert (pooled.sizes, pooled.steps) == (((60, 60, 40),), 16)
    assert (apart.sizes, apart.steps) == (((60,), (60,), (40,)), 6)


def test_a_labelled_target_works_with_split_sources(registry: Registry, files: NoFiles, make_cell: MakeCell) -> None:
    cell = make_cell(split_sources=Splitting(clusters=2), labelled_target=LABELS)
    (record,) = Trainer(registry, files, "cpu").train([cell])
    assert record.status == "ok"
    assert record.curves is not None
    assert record.curves.groups == [["a/0"], ["a/1"], ["b/0"], ["b/1"], ["c/labelled"]]
