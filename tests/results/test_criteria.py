"""The quality of selection criteria."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.results.criteria import (
    ALL,
    CANDIDATE_COLUMNS,
    COLUMNS,
    candidates,
    criteria,
    rank_correlation,
    sensitivity,
)
from msda_bench.results.criteria_text import criteria_notes, criteria_tables
from msda_bench.results.frame import runs_frame
from msda_bench.results.serialize import csv_text
from msda_bench.results.tables import render
from msda_bench.store.record import Outcome, Record
from msda_bench.suite.plan import CHANCE, LEAVE_ONE_OUT, ORACLE, Experiment, Method, Plan, PlannedCell, Search

THREE = [(60, 0.5, -1.0), (70, 0.9, -3.0), (80, 0.7, -2.0)]
Runs = dict[str, list[list[tuple[int, float, float] | str | None]]]


def frame(runs: Runs, by: str = "v", task: str = "classification", targets: tuple[str, ...] = ("t",)) -> pd.DataFrame:
    """`runs` has seeds of candidates for each method, at every target: correct of 100 and the scores of v and w.

    A source s that plays the target has ten more correct.
    """
    rows = tuple(
        Method(name, name.startswith("ref"), "recipe", (), Search(by, tuple({"mu": at} for at in range(len(seeds[0])))))
        for name, seeds in runs.items()
    )
    seeds = tuple(range(len(next(iter(runs.values())))))
    tests = ("v", "w", LEAVE_ONE_OUT, ORACLE)
    experiment = Experiment("table", "toy", task, targets, rows, seeds, criteria=tests)
    cells, records = [], {}
    for name, target, seed in ((name, target, seed) for name in runs for target in targets for seed in seeds):
        for candidate, run in enumerate(runs[name][seed]):
            for source in (None, "s"):
                key = f"{source} {name} {target} {seed} {candidate}"
                cells.append(PlannedCell("table", name, target, seed, key, candidate, source))
                if isinstance(run, str):
                    records[key] = Record(key, {}, run)  # type: ignore[arg-type]
                elif run is not None:
                    right = run[0] + (10 if source else 0)
                    outcome = (
                        Outcome(100, right)
                        if task == "classification"
                        else Outcome(100, sum_squared_error=float(right))
                    )
                    records[key] = Record(key, {}, "ok", outcome, validation={"v": run[1], "w": run[2]})
    return runs_frame(Plan("suite", (experiment,), tuple(cells)), records)


def row(found: pd.DataFrame, by: str, method: str, target: str = "t") -> pd.Series:
    (one,) = found[(found["criterion"] == by) & (found["method"] == method) & (found["target"] == target)].iloc
    return one


def test_regret_is_the_loss_compared_with_the_oracle() -> None:
    same = [(90, 1.0, 0.0)] * 3
    found = criteria(frame({"a": [THREE, THREE], "b": [THREE, same], "ref": [THREE] * 2}))
    assert tuple(found) == COLUMNS
    assert list(found["criterion"].unique()) == ["v", "w", LEAVE_ONE_OUT, CHANCE, ORACLE]
    assert list(found["method"].unique()) == [ALL, "a", "b"]  # references are not included
    assert [row(found, by, "a")["regret"] for by in ("v", "w", LEAVE_ONE_OUT, CHANCE, ORACLE)] == [10, 20, 0, 10, 0]
    assert (row(found, "v", "b")["regret"], row(found, "v", "a")["mean"], row(found, CHANCE, "a")["mean"]) == (
        5,
        70,
        70,
    )
    # Of both methods: 10 and 10 at the first seed, 10 and 0 at the second.
    assert row(found, "v", ALL)[["regret", "regret_standard_error", "n_regret"]].tolist() == [7.5, 2.5, 2]
    assert found.loc[found["selects"], "criterion"].unique().tolist() == ["v"]
    assert found.loc[found["target_labels"], "criterion"].unique().tolist() == [ORACLE]


def test_regret_of_errors_is_positive() -> None:
    found = criteria(frame({"a": [THREE]}, task="regression"))
    assert (row(found, "v", "a")["regret"], row(found, CHANCE, "a")["regret"]) == (
        pytest.approx(0.1),
        pytest.approx(0.1),
    )
    assert row(found, "v", "a")[["mean", "metric"]].tolist() == [0.7, "mse"]
    tried = candidates(frame({"a": [THREE]}, task="regression"))
    assert tried.loc[(tried["criterion"] == LEAVE_ONE_OUT) & (tried["target"] == "t"), "mean"].tolist() == [
        0.7,
        0.8,
        0.9,
    ]


def test_means_over_targets_are_over_seeds_that_every_target_has() -> None:
    runs = frame({"a": [THREE, THREE]}, targets=("t", "u")).astype({"status": object})
    runs.loc[(runs["target"] == "u") & (runs["seed"] == 1) & (runs["candidate"] == 2), "status"] = "oom"
    found = criteria(runs)
    assert [row(found, "v", "a", target)["n"] for target in ("t", "u", "average")] == [2, 1, 1]


def test_rank_correlation_is_averaged_over_runs() -> None:
    found = criteria(frame({"a": [THREE, [(1, 1.0, 0.0), (2, 2.0, 0.0), (3, 3.0, 0.0)]]}))
    columns = ["rank_correlation", "n_rank_correlation"]
    assert row(found, "v", "a")[columns].tolist() == [0.75, 2]
    assert row(found, "w", "a")[columns].tolist() == [-0.5, 1]
    assert row(found, ORACLE, "a")["n_rank_correlation"] == 0
    lost = criteria(frame({"a": [[*THREE, "diverged", None]]}))
    assert row(lost, "v", "a")[["rank_correlation", "n_regret"]].tolist() == [0.5, 0]  # nothing selected among fewer


numbers = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=9)


@given(numbers)
def test_rank_correlation_is_spearmans(pairs: list[tuple[int, int]]) -> None:
    found = rank_correlation(pairs)
    if len(pairs) < 3 or any(len(set(side)) == 1 for side in zip(*pairs, strict=True)):
        assert found is None
    else:
        assert found == pytest.approx(pd.DataFrame(pairs).rank().corr().iloc[0, 1])


def test_every_candidate_has_its_number_of_selections() -> None:
    found = candidates(frame({"a": [THREE, THREE, ["diverged"] * 3], "ref": [THREE] * 3}))
    assert tuple(found) == CANDIDATE_COLUMNS
    mine = found[(found["criterion"] == "v") & (found["target"] == "average") & (found["method"] == "a")]
    columns = ["candidate", "mean", "n", "n_planned", "n_selected"]
    assert mine[columns].values.tolist() == [[0, 0.5, 2, 3, 0], [1, 0.9, 2, 3, 2], [2, 0.7, 2, 3, 0]]


def test_sensitivity_is_the_score_by_each_number_that_varies() -> None:
    found = sensitivity(frame({"a": [THREE, THREE]}))
    assert found.values.tolist() == [
        ["table", "a", "mu", 0, 60],
        ["table", "a", "mu", 1, 70],
        ["table", "a", "mu", 2, 80],
    ]
    assert sensitivity(frame({"a": [THREE[:1]]})).empty


def test_tables_match_the_golden_files(golden) -> None:
    other = [(90, 0.2, 1.0), (85, 0.9, 2.0), (20, 0.1, 0.0)]
    runs = frame({"a": [THREE, THREE], "b": [THREE, other], "ref": [THREE] * 2}, targets=("t", "u"))
    found, experiment = criteria(runs), runs.attrs["plan"].experiments[0]
    shown = [f"{table.title}\n\n{render(table)}" for table in criteria_tables(experiment, found)]
    texts = {"selection.csv": csv_text(found), "selection.txt": "\n\n".join([*shown, *criteria_notes(found)]) + "\n"}
    for name, text in texts.items():
        golden(name, text)
