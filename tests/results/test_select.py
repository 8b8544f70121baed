"""Which candidate represents a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msda_bench.results.criteria import criteria
from msda_bench.results.frame import runs_frame
from msda_bench.results.notes import selection_notes
from msda_bench.results.select import select
from msda_bench.store.record import Outcome, Record
from msda_bench.suite.plan import LEAVE_ONE_OUT, ORACLE, Experiment, Method, Plan, PlannedCell, Search

Run = tuple[int, Mapping[str, float]] | str | None
"""Correct of 100 (or the sum of squared errors), the validators' scores; a status; or None for a missing record."""
THREE: list[Run] = [(60, {"v": 0.5, "w": -1.0}), (70, {"v": 0.9, "w": -3.0}), (80, {"v": 0.7, "w": -2.0})]


def record(key: str, run: Run, task: str, n: int = 100) -> Record:
    if not isinstance(run, tuple):
        return Record(key, {}, str(run), message="it broke")  # type: ignore[arg-type]
    correct, scores = run
    outcome = Outcome(n, correct) if task == "classification" else Outcome(n, sum_squared_error=float(correct))
    return Record(key, {}, "ok", outcome, validation=dict(scores))


def frame(
    runs: Mapping[str, Sequence[Sequence[Run]]],
    by: str = "v",
    left_out: Mapping[str, Mapping[str, Sequence[Sequence[Run]]]] | None = None,
    task: str = "classification",
    sizes: Mapping[str, int] | None = None,
) -> pd.DataFrame:
    """`runs` holds seeds of candidates for each method, at the only target t; `left_out` holds them for each source."""
    rows = tuple(
        Method(name, name.startswith("ref"), "recipe", (), Search(by, tuple({"mu": at} for at in range(len(seeds[0])))))
        for name, seeds in runs.items()
    )
    seeds = tuple(range(len(next(iter(runs.values())))))
    criteria = ("v", "w", *([LEAVE_ONE_OUT] if left_out else []), ORACLE)
    experiment = Experiment("table", "toy", task, ("t",), rows, seeds, criteria=criteria)
    cells, records = [], {}
    for source, of_source in ((None, runs), *(left_out or {}).items()):
        for name, of_method in of_source.items():
            for seed, tried in enumerate(of_method):
                for candidate, run in enumerate(tried):
                    key = f"{source} {name} {seed} {candidate}"
                    cells.append(PlannedCell("table", name, "t", seed, key, candidate, source))
                    if run is not None:
                        records[key] = record(key, run, task, (sizes or {}).get(source or "", 100))
    return runs_frame(Plan("suite", (experiment,), tuple(cells)), records)


def candidates(runs: pd.DataFrame, by: str | None = None) -> list[int]:
    return select(runs, by)["candidate"].tolist()


def test_the_validators_best_score_selects_without_target_labels() -> None:
    runs = frame({"a": [THREE, THREE[::-1], THREE[1:] + THREE[:1]]})
    assert candidates(runs) == [1, 1, 0]
    poisoned = runs.assign(n_correct=runs["n_correct"] * 0, score=0.0)
    for by in ("v", "w"):
        assert candidates(poisoned, by) == candidates(runs, by)
    assert candidates(runs, "w") == [0, 2, 2]


def test_the_oracle_selects_the_best_candidate_on_the_target() -> None:
    assert candidates(frame({"a": [THREE]}, by=ORACLE)) == [2]
    assert candidates(frame({"a": [THREE]}, by=ORACLE, task="regression")) == [0]


def test_a_validator_selects_whether_or_not_the_metric_is_known() -> None:
    """The metric may be missing because of target labels, which validators never see."""
    runs = frame({"a": [THREE]})
    runs["score"] = runs["score"].mask(runs["candidate"] == 1)
    assert candidates(runs) == [1]
    assert np.isnan(select(runs)["score"]).all()
    found = criteria(runs).set_index("criterion")
    assert found.loc["v", "n"].tolist() == [0] * len(found.loc["v"])
    runs["score"] = runs["score"].mask(runs["candidate"] == 2)
    assert candidates(runs, ORACLE) == [0]


def test_of_equally_good_candidates_the_first_is_selected() -> None:
    assert candidates(frame({"a": [[(1, {"v": 0.0}), (2, {"v": 1.0}), (3, {"v": 1.0})]]})) == [1]
    # Both candidates have the sum 16/21 over the sources; as floats, the second sum is larger.
    sizes = {"r": 7, "s": 3, "u": 21}
    first, second = [
        [100 * k / n for k, n in zip(found, sizes.values(), strict=True)] for found in ((0, 2, 2), (2, 1, 3))
    ]
    assert sum(first) < sum(second)
    left = {"r": {"a": [[(0, {}), (2, {})]]}, "s": {"a": [[(2, {}), (1, {})]]}, "u": {"a": [[(2, {}), (3, {})]]}}
    assert candidates(frame({"a": [THREE[:2]]}, LEAVE_ONE_OUT, left, sizes=sizes)) == [0]


@pytest.mark.parametrize(("task", "best"), [("classification", 2), ("regression", 1)])
def test_leave_one_source_out_selects_by_the_left_out_sources(task: str, best: int) -> None:
    runs = frame({"a": [THREE]}, LEAVE_ONE_OUT, {"s": {"a": [[(50, {}), (40, {}), (60, {})]]}}, task)
    (row,) = select(runs).itertuples()
    assert (row.candidate, row.key, row.status) == (best, f"None a 0 {best}", "ok")
    assert row.score == ({2: 80, 1: 0.7}[best])


def test_a_diverged_candidate_is_not_selected_but_reported() -> None:
    runs = frame({"a": [[THREE[0], "diverged", THREE[2]]], "b": [["diverged"] * 3]})
    assert select(runs)[["candidate", "status"]].values.tolist() == [[2, "ok"], [0, "diverged"]]
    said = "candidates that diverged, which cannot be selected: a 1 of 3, b 3 of 3"
    assert [(note.experiment, note.line) for note in selection_notes(runs)] == [("table", said)]


@pytest.mark.parametrize(("run", "status"), [(None, "missing"), ("failed", "failed"), ("oom", "oom")])
def test_nothing_is_selected_among_incomplete_candidates(run: Run, status: str) -> None:
    runs = frame({"a": [[*THREE, run], [*THREE, THREE[0]]]})
    found = select(runs)
    assert found["status"].tolist() == [status, "ok"]
    assert found["score"].isna().tolist() == [True, False]
    assert found["message"].astype(object).isna().tolist() == [run is None, True]
    (note,) = selection_notes(runs)
    assert note.line.endswith("; their runs count as missing: a 1 of 8")


def test_a_source_left_out_without_a_result_is_a_missing_run() -> None:
    runs = frame({"a": [THREE]}, LEAVE_ONE_OUT, {"s": {"a": [[(50, {}), None, (60, {})]]}})
    (row,) = select(runs).itertuples()
    assert (row.status, row.key, pd.isna(row.left_out)) == ("missing", "s a 0 1", True)
    assert candidates(runs, "v") == [1]
    assert candidates(frame({"a": [THREE]}, LEAVE_ONE_OUT, {"s": {"a": [[(5, {}), (9, {}), "diverged"]]}})) == [1]


def test_a_candidate_without_the_score_is_not_selected_but_reported() -> None:
    runs = frame({"a": [[(90, {"w": 9.0}), *THREE]], "b": [[(90, {})] * 4]})
    found = select(runs)
    assert found["status"].tolist() == ["ok", "missing"]
    assert found.loc[found["method"] == "b", ["candidate", "key", "score", "n_test"]].isna().all(axis=None)
    said = "candidates without the score that selects, which cannot be selected: a 1 of 4, b 4 of 4"
    assert [(note.experiment, note.line) for note in selection_notes(runs)] == [("table", said)]


def test_select_runs_once_and_does_not_change_runs_without_candidates() -> None:
    runs = frame({"a": [[THREE[0], "diverged"], ["diverged", (1, {})]]}, LEAVE_ONE_OUT)
    once = select(runs)
    assert select(once) is once
    assert select(once[once["status"] == "diverged"], ORACLE)["candidate"].tolist() == [1, 0]
    assert selection_notes(once) == []
    plain = runs[runs["candidate"] == 0].assign(candidate=pd.NA)
    assert select(plain) is plain


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(12)))
def test_the_order_of_rows_does_not_matter(order: list[int]) -> None:
    runs = frame({"a": [THREE, THREE[::-1]], "b": [[*THREE[:2], "oom"], [THREE[0], None, "failed"]]})
    assert select(runs.iloc[order]).equals(select(runs))
