"""Which candidate represents a run, and how well each criterion selects."""

import hashlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from msda_bench.results.criteria import criteria, sensitivity
from msda_bench.results.notes import notes
from msda_bench.results.select import select
from msda_bench.results.tables import csv_text
from msda_bench.store.record import Outcome, Record
from msda_bench.suite.plan import CHANCE, ORACLE, Experiment, Method, PlannedCell, Search, Tuning
from tests.results.conftest import frame_of

THREE = [(60, {"v": 0.5, "w": -1.0}), (70, {"v": 0.9, "w": -3.0}), (80, {"v": 0.7, "w": -2.0})]


def record(key, run, task):
    if not isinstance(run, tuple):
        return Record(key, {}, str(run), message="it broke")
    correct, scores = run
    outcome = Outcome(100, correct) if task == "classification" else Outcome(100, sum_squared_error=float(correct))
    return Record(key, {}, "ok", outcome, validation=dict(scores))


def frame(runs, by="v", task="classification", targets=("t",)):
    """`runs` holds seeds of candidates for each method, at every target."""
    rows = tuple(
        Method(name, name.startswith("ref"), "recipe", (), Search(by, tuple({"mu": at} for at in range(len(seeds[0])))))
        for name, seeds in runs.items()
    )
    seeds = tuple(range(len(next(iter(runs.values())))))
    experiment = Experiment("table", "toy", task, targets, rows, seeds, criteria=("v", "w", ORACLE))
    cells, records = [], {}
    tried = [
        (name, target, seed, candidate, run)
        for name, of_method in runs.items()
        for target in targets
        for seed, of_seed in enumerate(of_method)
        for candidate, run in enumerate(of_seed)
    ]
    for name, target, seed, candidate, run in tried:
        key = hashlib.sha256(f"{name} {target} {seed} {candidate}".encode()).hexdigest()
        cells.append(PlannedCell("table", name, target, seed, key, candidate))
        if run is not None:
            records[key] = record(key, run, task)
    return frame_of((experiment, cells, records))


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
    assert chosen(frame({"a": [THREE]}, by=ORACLE, task="regression")) == [0]
    # The metric may be missing because of target labels, which validators never see.
    unknown = frame({"a": [THREE]})
    unknown["score"] = unknown["score"].mask(unknown["candidate"] > 0)
    assert (chosen(unknown), select(unknown)["score"].isna().all(), chosen(unknown, ORACLE)) == ([1], True, [0])
    assert criteria(unknown).query("criterion == 'v'")["n"].tolist() == [0, 0]


def test_of_equally_good_candidates_the_first_is_selected():
    assert chosen(frame({"a": [[(1, {"v": 0.0}), (2, {"v": 1.0}), (3, {"v": 1.0})]]})) == [1]


def test_a_sum_of_criteria_adds_z_scores_of_the_means_over_tuning_seeds():
    # v alone chooses 0, w alone 1, both together 2; u tells none from another, and 3 diverged at a tuning seed.
    scores = [{"v": 1.0, "w": 0.0}, {"v": 0.0, "w": 90.0}, {"v": 0.9, "w": 80.0}, {"v": 2.0, "w": 200.0}]
    tuned = [(50 + place, {**of_one, "u": 1.0}) for place, of_one in enumerate(scores)]
    at_100 = [(50, {"v": 1.0, "w": 40.0, "u": 1.0}), *tuned[1:3], "diverged"]
    fresh = [(60 + place, {}) for place in range(3)] + [None]
    runs = frame({"a": [at_100, tuned, fresh, fresh]})
    (table,) = runs.attrs["plan"].experiments
    tracks = ("v", "w", "v+w", "v+w+u", "first", ORACLE)
    tuning = Tuning((0, 1), tracks)
    plan = replace(runs.attrs["plan"], experiments=(replace(table, seeds=(2, 3), tuning=tuning, criteria=tracks),))
    runs.attrs["plan"] = plan
    assert {by: select(runs, by)["candidate"].unique().tolist() for by in tracks} == {
        "v": [0], "w": [1], "v+w": [2], "v+w+u": [2], "first": [0], ORACLE: [2],
    }  # fmt: skip
    assert select(runs, "w")["score"].tolist() == [61.0, 61.0]
    assert lines(runs) == ["candidates that diverged, which cannot be selected: a 1 of 4"]


def test_a_diverged_candidate_is_not_selected_but_reported():
    runs = frame({"a": [[THREE[0], "diverged", THREE[2]]], "b": [["diverged"] * 3]})
    assert select(runs)[["candidate", "status"]].values.tolist() == [[2, "ok"], [0, "diverged"]]
    assert lines(runs) == ["candidates that diverged, which cannot be selected: a 1 of 3, b 3 of 3"]


@pytest.mark.parametrize(("run", "status"), [(None, "missing"), ("failed", "failed"), ("oom", "oom")])
def test_nothing_is_selected_among_incomplete_candidates(run, status):
    runs = frame({"a": [[*THREE, run], [*THREE, THREE[0]]]})
    rows = select(runs)
    assert rows["status"].tolist() == [status, "ok"]
    assert rows["score"].isna().tolist() == [True, False]
    assert rows["message"].astype(object).isna().tolist() == [run is None, True]
    assert lines(runs) == ["incomplete candidates; their runs count as missing: a 1 of 8"]


def test_a_candidate_without_the_score_is_not_selected_but_reported():
    runs = frame({"a": [[(90, {"w": 9.0}), *THREE]], "b": [[(90, {})] * 4]})
    rows = select(runs)
    assert rows["status"].tolist() == ["ok", "missing"]
    assert rows.loc[rows["method"] == "b", ["candidate", "key", "score", "n_test"]].isna().all(axis=None)
    assert lines(runs) == ["candidates without the score that selects, which cannot be selected: a 1 of 4, b 4 of 4"]


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


def test_regret_of_errors_is_positive():
    runs = frame({"a": [THREE]}, task="regression")
    judgements = criteria(runs)
    assert [row(judgements, by, "a")["regret"] for by in ("v", CHANCE)] == pytest.approx([0.1, 0.1])
    assert row(judgements, "v", "a")[["mean", "metric"]].tolist() == [0.7, "mse"]


def test_means_over_targets_are_over_seeds_that_every_target_has():
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
    other = [(90, {"v": 0.2, "w": 1.0}), (85, {"v": 0.9, "w": 2.0}), (20, {"v": 0.1, "w": 0.0})]
    runs = frame({"a": [THREE, THREE], "b": [THREE, other], "ref": [THREE] * 2}, targets=("t", "u"))
    golden("selection.csv", csv_text(criteria(runs)))
