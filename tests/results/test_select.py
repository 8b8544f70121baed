"""Which candidate represents a run, and how well each criterion selects."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from msda_bench.results.criteria import criteria, sensitivity
from msda_bench.results.model_selection import select
from msda_bench.results.notes import notes
from msda_bench.results.tables import csv_text
from msda_bench.suite.plan import CHANCE, ORACLE, Search, Tuning
from tests.results.conftest import frame_of, planned

THREE = [(120, {"v": 0.5, "w": -1.0}), (140, {"v": 0.9, "w": -3.0}), (160, {"v": 0.7, "w": -2.0})]
ERRORS = [(correct / 200, scores) for correct, scores in THREE]


def frame(runs, by="v", task="classification", targets=("t",), **options):
    """`runs` holds seeds of candidates for each method, at every target."""
    search = Search(by, tuple({"mu": at} for at in range(len(next(iter(runs.values()))[0]))))
    options = {"criteria": ("v", "w", ORACLE)} | options
    of = {name: dict.fromkeys(targets, seeds) for name, seeds in runs.items()}
    return frame_of(planned(of, task=task, search=search, **options))


def lines(runs):
    return [note.line for note in notes(runs) if note.kind == "candidates"]


def chosen(runs, by=None):
    return select(runs, by)["candidate"].tolist()


def test_a_validator_selects_without_target_labels_and_the_oracle_by_them():
    runs = frame({"a": [THREE, THREE[::-1], THREE[1:] + THREE[:1]]})
    poisoned = runs.assign(n_correct=runs["n_correct"] * 0, score=0.0)
    for frames in (runs, poisoned):
        assert (chosen(frames), chosen(frames, "w")) == ([1, 1, 0], [0, 2, 2])
    assert chosen(frame({"a": [THREE]}, by=ORACLE)) == [2]
    assert chosen(frame({"a": [ERRORS]}, by=ORACLE, task="regression")) == [0]
    # The metric may be missing because of target labels, which validators never see.
    unknown = frame({"a": [THREE]})
    unknown["score"] = unknown["score"].mask(unknown["candidate"] > 0)
    assert (chosen(unknown), select(unknown)["score"].isna().all(), chosen(unknown, ORACLE)) == ([1], True, [0])
    assert criteria(unknown).query("criterion == 'v'")["n"].tolist() == [0, 0]
    # Of equally good candidates the first is selected.
    assert chosen(frame({"a": [[(1, {"v": 0.0}), (2, {"v": 1.0}), (3, {"v": 1.0})]]})) == [1]


def test_a_sum_of_criteria_adds_z_scores_of_the_means_over_tuning_seeds():
    # v alone chooses 0, w alone 1, both together 2; u tells none from another, and 3 diverged at a tuning seed.
    scores = [{"v": 1.0, "w": 0.0}, {"v": 0.0, "w": 90.0}, {"v": 0.9, "w": 80.0}, {"v": 2.0, "w": 200.0}]
    tuned = [(100 + place, {**of_one, "u": 1.0}) for place, of_one in enumerate(scores)]
    diverging = [(100, {"v": 1.0, "w": 40.0, "u": 1.0}), *tuned[1:3], "diverged"]
    fresh = [(120 + place, {}) for place in range(3)] + [None]
    tracks = ("v", "w", "v+w", "v+w+u", "first", ORACLE)
    seeds = [fresh, fresh, diverging, tuned]
    runs = frame({"a": seeds}, tuning=Tuning((100, 101), tracks), criteria=tracks)
    assert {by: select(runs, by)["candidate"].unique().tolist() for by in tracks} == {
        "v": [0], "w": [1], "v+w": [2], "v+w+u": [2], "first": [0], ORACLE: [2],
    }  # fmt: skip
    assert select(runs, "w")["score"].tolist() == [60.5, 60.5]
    assert lines(runs) == ["candidates that diverged, which cannot be selected: a 1 of 4"]


@pytest.mark.parametrize(
    ("runs", "statuses", "line"),
    [
        (
            {"a": [[THREE[0], "diverged", THREE[2]]], "b": [["diverged"] * 3]}, ["ok", "diverged"],
            "candidates that diverged, which cannot be selected: a 1 of 3, b 3 of 3",
        ),
        (
            {"a": [[(180, {"w": 9.0}), *THREE]], "b": [[(180, {})] * 4]}, ["ok", "missing"],
            "candidates without the score that selects, which cannot be selected: a 1 of 4, b 4 of 4",
        ),
        *(
            (
                {"a": [[*THREE, run], [*THREE, THREE[0]]]}, [status, "ok"],
                "incomplete candidates; their runs count as missing: a 1 of 8",
            )
            for run, status in ((None, "missing"), ("failed: it broke", "failed"), ("oom: it broke", "oom"))
        ),
    ],
)  # fmt: skip
def test_a_candidate_that_cannot_be_selected_is_reported(runs, statuses, line):
    runs = frame(runs)
    rows = select(runs)
    assert rows["status"].tolist() == statuses
    assert rows["score"].isna().tolist() == [status != "ok" for status in statuses]
    assert rows["message"].notna().tolist() == [status in {"failed", "oom"} for status in statuses]
    assert rows["key"].isna().tolist() == ["without" in line and status == "missing" for status in statuses]
    assert lines(runs) == [line]


def test_select_runs_once_and_does_not_change_runs_without_candidates():
    runs = frame({"a": [[THREE[0], "diverged"], ["diverged", (1, {})]]})
    once = select(runs)
    assert select(once) is once
    assert select(once[once["seed"] == 1], ORACLE)["candidate"].tolist() == [0]  # not selected again
    assert lines(once) == []
    plain = runs[runs["candidate"] == 0].assign(candidate=pd.NA)
    assert select(plain) is plain


def row(judgements, by, method, target="t"):
    rows = judgements.set_index(["criterion", "method", "target"])
    return rows.loc[(by, method, target)]


def test_regret_of_errors_is_positive_and_means_are_over_seeds_that_every_target_has():
    judgements = criteria(frame({"a": [ERRORS]}, task="regression"))
    assert [row(judgements, by, "a")["regret"] for by in ("v", CHANCE)] == pytest.approx([0.1, 0.1])
    assert row(judgements, "v", "a")[["mean", "metric"]].tolist() == [0.7, "mse"]
    runs = frame({"a": [THREE, THREE]}, targets=("t", "u")).astype({"status": object})
    runs.loc[(runs["target"] == "u") & (runs["seed"] == 1) & (runs["candidate"] == 2), "status"] = "oom"
    judgements = criteria(runs)
    assert [row(judgements, "v", "a", target)["n"] for target in ("t", "u", "average")] == [2, 1, 1]


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=9))
def test_rank_correlation_is_spearmans(pairs):
    rho = row(criteria(frame({"a": [[(n, {"v": score}) for n, score in pairs]]})), "v", "a")["rank_correlation"]
    defined = len(pairs) > 2 and all(len(set(side)) > 1 for side in zip(*pairs, strict=True))
    expected = spearmanr(*zip(*pairs, strict=True)).statistic if defined else np.nan
    assert float(rho) == pytest.approx(expected, nan_ok=True)


def test_every_candidate_has_its_score_by_each_number_that_varies():
    runs = frame({"a": [THREE, THREE, ["diverged"] * 3], "ref": [THREE] * 3})
    points = sensitivity(runs).query("method == 'a'").values.tolist()
    assert points == [["table", "a", "mu", mu, score] for mu, score in enumerate((60, 70, 80))]
    assert sensitivity(frame({"a": [THREE[:1]]})).empty


def test_rows_match_the_golden_file(golden):
    other = [(180, {"v": 0.2, "w": 1.0}), (170, {"v": 0.9, "w": 2.0}), (40, {"v": 0.1, "w": 0.0})]
    runs = frame({"a": [THREE, THREE], "b": [THREE, other], "ref": [THREE] * 2}, targets=("t", "u"))
    golden("selection.csv", csv_text(criteria(runs)))
