"""Confusion counts of stored runs."""

from __future__ import annotations

from msda_bench import load_confusion
from msda_bench.results.predictions import per_class
from msda_bench.store import Outcome
from tests.results.conftest import planned, write_folder

FIRST = Outcome(10, 7, confusion=((0, 0, 4), (0, 2, 1), (2, 0, 2), (2, 2, 3)))
SECOND = Outcome(10, 10, confusion=((0, 0, 5), (2, 2, 5)))


def test_every_run_with_confusion_counts_is_listed(tmp_path) -> None:
    runs = {"A": {"t": [FIRST, SECOND]}, "B": {"t": [Outcome(10, 5), "failed: why"]}}
    counts = load_confusion(write_folder(tmp_path / "suite", planned(runs)))
    assert list(counts) == ["experiment", "target", "method", "seed", "true", "predicted", "count"]
    assert counts[["method", "seed"]].drop_duplicates().to_numpy().tolist() == [["A", 0], ["A", 1]]
    pairs = counts.loc[counts["seed"] == 0, ["true", "predicted", "count"]]
    assert tuple(pairs.itertuples(index=False, name=None)) == FIRST.confusion
    classes = per_class(counts)
    assert classes[["class", "n", "taken_for"]].values.tolist() == [[0, 10, 2], [2, 10, 0]]
    assert classes["accuracy"].tolist() == [(80 + 100) / 2, (60 + 100) / 2]
