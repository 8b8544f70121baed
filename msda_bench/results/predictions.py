"""Loads what runs predicted: the counts of their classes, and the prediction of each test example where it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from msda_bench.errors import BenchError, StoreError
from msda_bench.results import formats
from msda_bench.results.argument_checks import FrameSchema
from msda_bench.results.formats import Unit
from msda_bench.results.frame import runs_of
from msda_bench.results.load import OF_EXAMPLES, kept_predictions, read_records
from msda_bench.results.model_selection import select
from msda_bench.results.notes import is_whole
from msda_bench.results.report import Column, Report, Section, Table
from msda_bench.results.runs import are_ok, ok_runs, results_of

PLACES = ["experiment", "target", "method", "seed"]
"""The columns that identify a run."""


def load_confusion(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Loads the confusion counts of every run that is ok: how often it predicted each class for each true class.

    Args:
        runs: a result folder, or a frame from `load_results`, whose folder is read.

    Returns:
        One row for each run and each pair of classes that occurs: `experiment, target, method, seed, true, predicted`
        (class numbers) and `count` (test examples). Runs of regression have no rows, nor do runs of older versions,
        which did not store these counts.

    Raises:
        StoreError: the folder or a record cannot be read.
    """
    chosen = select(runs_of(runs))
    ok = ok_runs(chosen)
    counts = [np.empty((0, 3), np.int64)]
    rows: list[int] = []
    for row, record, _ in read_records(ok):
        outcome = record.outcome
        if outcome is None or outcome.confusion is None:
            continue
        if not outcome.is_possible:
            raise StoreError(f"record {record.key}: its counts do not add up; run `msda-bench store verify`")
        counts.append(np.array(outcome.confusion, np.int64))
        rows += [row] * len(outcome.confusion)
    true, predicted, count = np.concatenate(counts).T
    places = chosen.loc[np.array(rows, int), PLACES].reset_index(drop=True)
    return places.assign(true=true, predicted=predicted, count=count)


def load_predictions(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Loads the predictions of runs for each test example, from suites with `keep: [predictions]`.

    Args:
        runs: a result folder, or a frame from `load_results`, whose folder is read for these runs.

    Returns:
        One row for each run and test example: `experiment, target, method, seed, example` (its place in the
        split's test part), `row` (its place among all examples of the domain), `label`
        (-1 or NaN for a target without labels) and `predicted` (class numbers, or values), and for classification a
        float32 column per class: `probability_0` and so on. Runs without kept predictions have no rows. For a target
        without labels a note of the leaderboard says where these answers differ widely from what the sources have.

    Raises:
        StoreError: no run has kept predictions, or a file is missing, damaged or unreadable.
    """
    from scipy.special import softmax

    chosen = select(runs_of(runs))
    ok = ok_runs(chosen)
    places = ok[[*PLACES, "task"]].astype(object)
    parts = []
    for row, record, store in read_records(ok):
        place = places.loc[row].to_dict()
        classifies = place.pop("task") == "classification"
        arrays = kept_predictions(store, record, classifies=classifies)
        if arrays is None:
            continue
        columns: dict[str, Any] = {"example": np.arange(len(arrays["predicted"]))}
        for name in OF_EXAMPLES:
            columns[name] = arrays[name]
        if classifies:
            shares = softmax(arrays["outputs"], axis=1).astype(np.float32)
            for number, of_class in enumerate(shares.T):
                columns[f"probability_{number}"] = of_class
        parts.append(pd.DataFrame(place | columns))
    if not parts:
        raise StoreError("no run here keeps its predictions; add `keep: [predictions]` to the suite and run it again")
    return pd.concat(parts, ignore_index=True).astype(dict.fromkeys(PLACES[:3], "category"))


def per_class(confusion: pd.DataFrame) -> pd.DataFrame:
    """Computes the accuracy on each class (its recall), mean over the seeds.

    Args:
        confusion: a frame from `load_confusion`.

    Returns:
        One row for each experiment, target, method and class of the test: `n` (examples of the class, all seeds
        together), `accuracy` (percent), and `taken_for` (the most frequent wrong prediction; NA if there is none).
    """
    is_right = confusion["true"] == confusion["predicted"]
    counted = confusion.assign(right=confusion["count"].where(is_right, 0))
    by_class = ["experiment", "target", "method", "true"]
    runs = counted.groupby([*PLACES, "true"], observed=True, sort=False)[["count", "right"]].sum()
    runs["accuracy"] = 100 * runs["right"] / runs["count"]
    of_class = runs.groupby(by_class, observed=True, sort=False)
    classes = of_class.agg(n=("count", "sum"), accuracy=("accuracy", "mean"))
    of_wrong = confusion[~is_right].groupby([*by_class, "predicted"], observed=True, sort=False)
    wrong = of_wrong["count"].sum().reset_index()
    wrong = wrong.sort_values("count", ascending=False, kind="stable").drop_duplicates(by_class)
    worst = wrong.set_index(by_class)["predicted"]
    classes["taken_for"] = worst.reindex(classes.index).astype("Int64")
    return classes.reset_index().rename(columns={"true": "class"})


_COLUMNS = ("experiment", "target", "method", "class", "n", "accuracy", "taken_for")
PER_CLASS = FrameSchema(
    "per_class", "per_class", _COLUMNS, _COLUMNS[:3], _COLUMNS[3:6], lambda folder: per_class(load_confusion(folder))
)


def classes_report(runs: pd.DataFrame) -> Report:
    """The report of `msda-bench leaderboard --per-class`: a table for each experiment and target, one row per class.

    Raises:
        BenchError: no record has the counts.
    """
    results = results_of(runs)
    if not any(table.task == "classification" for table in results.plan.experiments):
        raise BenchError(f"{results.folder}: has no classification task, so there are no classes to show")
    classes = per_class(load_confusion(runs))
    if not are_ok(runs).any():
        raise BenchError(f"{results.folder}: no run has a result, so there are no classes to show")
    if classes.empty:
        raise BenchError(
            f"{results.folder}: no run of a classification task has counts of its test, which older records do "
            "not contain; train them again in another folder (run --out DIR)"
        )
    unit = Unit("accuracy in percent")
    tables = []
    for (experiment, target), rows in classes.groupby(["experiment", "target"], observed=True, sort=False):
        columns = [Column("class", formats.count, ["class"])]
        for method in rows["method"].astype(object).unique():
            columns.append(Column(method, formats.number, ["accuracy"], unit, ("method", method)))
        name = f"{experiment}-classes-{target}"
        title = f"{experiment}, {target}: accuracy on each class in percent, mean over seeds"
        by_class = rows.sort_values("class", kind="stable")
        tables.append(Table(name, title, by_class, tuple(columns), "class", by_column=True))
    return Report((Section(tuple(tables)),), classes, is_whole(runs))
