"""Finds the metric of the tables, and computes its value for each run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd

from msda_bench.blame import blaming, package_of
from msda_bench.errors import BenchError, StoreError
from msda_bench.results.recorded import read_records
from msda_bench.results.runs import results_of
from msda_bench.store.record import Record
from msda_bench.suite.plan import DEFAULT_MEASURES, Experiment, Measure, Plan

if TYPE_CHECKING:
    from msda_bench.api import Metric

METRIC = "metric:"
"""Prefix of columns with the values of requested metrics."""


def with_metrics(plan: Plan, names: Sequence[str]) -> tuple[Plan, dict[str, tuple[Measure, ...]]]:
    """The plan with the metrics that tables show, and all metrics to compute for each experiment.

    Without names, these are the metrics of the suite. Otherwise each experiment uses the named metrics that suit its
    task, and its table shows the first of them.

    Raises:
        BenchError: a metric suits no experiment, or is not installed.
    """
    wanted: dict[str, tuple[Measure, ...]] = {}
    tables = []
    for table in plan.experiments:
        named = tuple(measure for name in names if (measure := _suited(table, name)) is not None)
        wanted[table.name] = named or ((table.metric,) if table.metric else ())
        shown = named[0] if named else table.metric
        tables.append(replace(table, metric=None if shown in DEFAULT_MEASURES.values() else shown))
    for name in names:
        if not any(name == measure.name for named in wanted.values() for measure in named):
            tasks = " and ".join(dict.fromkeys(table.task for table in plan.experiments))
            raise BenchError(f"metric {name!r} is of another task; the runs are of {tasks}")
    return replace(plan, experiments=tuple(tables)), wanted


def _suited(table: Experiment, name: str) -> Measure | None:
    """The metric of this name, with the suite's parameters if it is the suite's; None if it is for another task."""
    for known in (table.metric, DEFAULT_MEASURES.get(table.task)):
        if known is not None and known.name == name:
            return known
    from msda_bench.plugins import discover
    from msda_bench.suite.choice import make, measure_of

    metric = make(discover(), "metric", name, {})
    return measure_of(metric) if table.task in metric.component.tasks else None


def measured(runs: pd.DataFrame, wanted: dict[str, tuple[Measure, ...]]) -> pd.DataFrame:
    """Adds a column for each requested metric to the runs, and sets the score to each experiment's first one.

    Raises:
        BenchError: a metric is not installed, raises, or a record cannot be read.
    """
    if not any(wanted.values()):
        return runs
    runs = runs.copy()
    for name, measures in wanted.items():
        rows = runs[(runs["experiment"] == name).to_numpy(dtype=bool)]
        if len(rows) and measures:
            values = _values(rows, measures)
            for measure in measures:
                runs.loc[values.index, f"{METRIC}{measure.name}"] = values[measure.name]
            runs.loc[values.index, "score"] = values[measures[0].name]
    return runs


def refuse_unmeasured(runs: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuses requested metrics if no ok run has a value of any.

    Raises:
        BenchError: there are ok runs, but none has a value.
    """
    values = runs.reindex(columns=[f"{METRIC}{name}" for name in names])[(runs["status"] == "ok").to_numpy()]
    if not names or values.empty or values.notna().to_numpy().any():
        return
    measure = next(table.metric for table in results_of(runs).plan.experiments if table.metric is not None)
    folder, again = results_of(runs).folder or "the runs", "train them again in another folder (run --out DIR)"
    raise BenchError(f"{folder}: no run has {measure.label}: {why_unmeasured(measure)}; {again}")


def _values(rows: pd.DataFrame, measures: Sequence[Measure]) -> pd.DataFrame:
    values = pd.DataFrame({measure.name: np.nan for measure in measures}, index=rows.index)
    read = [(measure, None if measure.stored else _metric(measure)) for measure in measures]
    defaults = [measure for measure, _ in read if measure in DEFAULT_MEASURES.values()]
    for measure in defaults:  # already exact
        values[measure.name] = rows["score"]
    rest = [(measure, metric) for measure, metric in read if measure not in defaults]
    for row, record, _ in read_records(rows[(rows["status"] == "ok").to_numpy()]) if rest else ():
        for measure, metric in rest:
            values.loc[row, measure.name] = (100 if measure.percent else 1) * _value(measure, metric, record)
    return values


def _metric(measure: Measure) -> Metric:
    from msda_bench.plugins import discover
    from msda_bench.suite.choice import make

    return cast("Metric", make(discover(), "metric", measure.name, measure.params).component)


def _value(measure: Measure, metric: Metric | None, record: Record) -> float:
    """The metric's value for an ok run; NaN if its record has neither the value nor the counts for it."""
    if metric is None:
        return float(record.metrics.get(measure.name, math.nan))
    outcome = record.outcome
    if outcome is None or not outcome.is_possible:
        raise StoreError(f"record {record.key}: ok, but without a possible outcome; run `msda-bench store verify`")
    if not outcome.n_test:
        return math.nan
    if outcome.n_correct is not None and outcome.confusion is None:
        return math.nan
    from msda_bench.engine.evaluate import view_of

    with blaming({package_of(type(metric))}, f"metric {measure.name!r} cannot be computed"):
        value = float(metric.value(view_of(outcome)))
    return value if math.isfinite(value) else math.nan


def why_unmeasured(measure: Measure) -> str:
    """Explains why records may have no value of a metric."""
    if measure.stored:
        return "it needs the outputs of the test, so only runs whose suite names it have it"
    return "it is undefined for them, or they were stored before records had the necessary counts"
