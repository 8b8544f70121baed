"""Finds the metric of the tables, and computes its value for each run."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from msda_bench.component.task import MetricInfo
from msda_bench.errors import BenchError, StoreError
from msda_bench.plugin_errors import package_of, plugin_errors
from msda_bench.results.load import kept_predictions, read_records
from msda_bench.results.runs import ok_runs, results_of
from msda_bench.store import Store
from msda_bench.store.record import Record
from msda_bench.suite.plan import DEFAULT_METRICS, Experiment, Plan

if TYPE_CHECKING:
    from msda_bench.api import Metric

METRIC = "metric:"
"""Prefix of columns with the values of requested metrics."""
_CALL = re.compile(r"([^()=]+)\((\w+)=([^()=]+)\)")


def with_metrics(plan: Plan, names: Sequence[str]) -> tuple[Plan, dict[str, tuple[MetricInfo, ...]]]:
    """The plan with the metrics that tables show, and all metrics to compute for each experiment.

    Without names, these are the metrics of the suite. Otherwise each experiment uses the named metrics that suit its
    task, and its table shows the first of them.

    Raises:
        BenchError: a metric suits no experiment, or is not installed.
    """
    wanted: dict[str, tuple[MetricInfo, ...]] = {}
    tables = []
    known: set[str] = set()
    for table in plan.experiments:
        measures = []
        for name in names:
            measure = _suited(table, name)
            if measure is not None:
                measures.append(measure)
        if not measures and table.metric is not None:
            measures.append(table.metric)
        wanted[table.name] = tuple(measures)
        known.update(measure.name for measure in measures)
        shown = measures[0] if measures else None
        tables.append(replace(table, metric=None if shown in DEFAULT_METRICS.values() else shown))
    for name in names:
        if _parsed(name)[0] not in known:
            tasks = " and ".join(dict.fromkeys(table.task for table in plan.experiments))
            raise BenchError(f"metric {name!r} is of another task; the runs are of {tasks}")
    return replace(plan, experiments=tuple(tables)), wanted


def _suited(table: Experiment, given: str) -> MetricInfo | None:
    """The requested metric; None if it is for another task.

    Parameters that it shares with the suite's metric, such as the class that both are about, have the suite's values.
    """
    name, params = _parsed(given)
    for known in (table.metric, DEFAULT_METRICS.get(table.task)):
        if known is not None and known.name == name and not params:
            return known
    from msda_bench.plugins import discover
    from msda_bench.suite.choice import make, metric_info

    registry = discover()
    metric = make(registry, "metric", name, params)
    if table.metric is not None:
        has = metric.component.params().keys() - params.keys()
        shared = {key: value for key, value in table.metric.params.items() if key in has}
        metric = make(registry, "metric", name, params | shared)
    return metric_info(metric) if table.task in metric.component.tasks else None


def _parsed(given: str) -> tuple[str, dict[str, Any]]:
    """The name in `auprc` or `auprc(positive=0)`, and the parameter.

    Raises:
        BenchError: it is neither.
    """
    found = _CALL.fullmatch(given)
    if found is None:
        if set(given) & set("()="):
            raise BenchError(f"metric {given!r}: write NAME, or NAME(PARAMETER=VALUE) such as auprc(positive=0)")
        return given, {}
    name, key, text = found.groups()
    try:
        return name, {key: json.loads(text)}
    except ValueError:
        return name, {key: text}


def measured(runs: pd.DataFrame, wanted: dict[str, tuple[MetricInfo, ...]]) -> pd.DataFrame:
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
    columns = [f"{METRIC}{_parsed(name)[0]}" for name in names]
    values = ok_runs(runs).reindex(columns=columns)
    if not names or values.empty or values.notna().to_numpy().any():
        return
    results = results_of(runs)
    measure = next(table.metric for table in results.plan.experiments if table.metric is not None)
    remedy = "train them again in another folder (run --out DIR)"
    raise BenchError(f"{results.folder or 'the runs'}: no run has {measure.label}: {why_unmeasured(measure)}; {remedy}")


def _values(rows: pd.DataFrame, measures: Sequence[MetricInfo]) -> pd.DataFrame:
    """The values of metrics for the runs of an experiment, a column each."""
    values = pd.DataFrame({measure.name: np.nan for measure in measures}, index=rows.index)
    rest = []
    for measure in measures:
        if measure in DEFAULT_METRICS.values():
            values[measure.name] = rows["score"]  # already exact
        else:
            rest.append(measure)
    if not rest:
        return values
    metric = functools.cache(lambda place: _metric(rest[place]))
    for row, record, store in read_records(ok_runs(rows)):
        for place, measure in enumerate(rest):
            value = _stored(measure, record) if measure.stored else None
            if value is None:
                value = _value(measure, functools.partial(metric, place), record, store)
            values.loc[row, measure.name] = (100 if measure.percent else 1) * value
    return values


def _stored(measure: MetricInfo, record: Record) -> float | None:
    """The value that was computed when the run was tested; None if there is none, or one with other parameters."""
    if measure.name not in record.metrics:
        return None
    for ref in record.cell.get("metrics") or ():
        others = {name for name, value in ref["params"].items() if measure.params.get(name, value) != value}
        if ref["name"] == measure.name and others:
            return None
    return float(record.metrics[measure.name])


def _metric(measure: MetricInfo) -> Metric:
    from msda_bench.plugins import discover
    from msda_bench.suite.choice import make

    return cast("Metric", make(discover(), "metric", measure.name, measure.params).component)


def _value(measure: MetricInfo, metric: Callable[[], Metric], record: Record, store: Store) -> float:
    """The metric's value for an ok run; NaN if its record has neither the counts nor the predictions for it."""
    outcome = record.outcome
    if outcome is None or not outcome.is_possible:
        raise StoreError(f"record {record.key}: ok, but without a possible outcome; run `msda-bench store verify`")
    classifies = outcome.n_correct is not None
    if not outcome.n_test or (classifies and outcome.confusion is None):
        return math.nan
    from msda_bench.engine.outcome import view_of

    given = []
    if measure.stored:
        arrays = kept_predictions(store, record, classifies=classifies)
        if arrays is None or "outputs" not in arrays:
            return math.nan
        import torch

        given = [torch.from_numpy(np.array(arrays[name])) for name in ("outputs", "label")]
    made = metric()
    with plugin_errors({package_of(type(made))}, f"metric {measure.name!r} cannot be computed"):
        value = float(made.value(view_of(outcome, *given)))
    return value if math.isfinite(value) else math.nan


def why_unmeasured(measure: MetricInfo) -> str:
    """Explains why records may have no value of a metric."""
    if measure.stored:
        return "it needs the outputs of the test: name it in the suite, or add `keep: [predictions]`"
    return "it is undefined for them, or they were stored before records had the necessary counts"
