"""Confusion counts of stored runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from msda_bench import load_confusion
from msda_bench.results.predictions import per_class
from msda_bench.store import Outcome, Store
from msda_bench.suite.plan import Plan
from tests.results.conftest import planned

FIRST = Outcome(10, 7, confusion=((0, 0, 4), (0, 2, 1), (2, 0, 2), (2, 2, 3)))
SECOND = Outcome(10, 10, confusion=((0, 0, 5), (2, 2, 5)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    experiment, cells, records = planned({"A": {"t": [FIRST, SECOND]}, "B": {"t": [Outcome(10, 5), "failed: why"]}})
    store = Store.create(tmp_path / "suite")
    store.write_plan(Plan("suite", (experiment,), tuple(cells)))
    for record in records.values():
        store.publish(record)
    return store.folder


def test_every_run_with_confusion_counts_is_listed(folder: Path) -> None:
    found = load_confusion(folder)
    assert list(found) == ["experiment", "target", "method", "seed", "true", "predicted", "count"]
    assert found[["method", "seed"]].drop_duplicates().to_numpy().tolist() == [["A", 0], ["A", 1]]
    pairs = ["true", "predicted", "count"]
    assert tuple(map(tuple, found.loc[found["seed"] == 0, pairs].to_numpy().tolist())) == FIRST.confusion
    classes = per_class(found)
    assert classes["class"].tolist() == [0, 2]
    assert classes["accuracy"].tolist() == [(80 + 100) / 2, (60 + 100) / 2]
    assert (classes["n"].tolist(), classes["taken_for"].tolist()) == ([10, 10], [2, 0])
