"""Reads a result folder as a data frame: one row per planned run, missing runs included."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype
from pydantic import PositiveInt

from msda_bench.errors import StoreError
from msda_bench.results.argument_checks import FrameSchema, argument
from msda_bench.results.load import VALIDATOR, VERSION, read_records, recorded_rows
from msda_bench.results.metric import METRIC, measured, refuse_unmeasured, with_metrics
from msda_bench.results.model_selection import Choices, choices_of, chosen_on_tuning_seeds, select
from msda_bench.results.runs import (
    Results,
    ResultsFrame,
    are_ok,
    known_results,
    recorded_runs,
    results_of,
    with_results,
)
from msda_bench.store import Record, Store
from msda_bench.store.record import Curves
from msda_bench.suite.plan import Experiment, Plan, PlannedRun
from msda_bench.suite.protocol import Splitting, source_parts

AVERAGE = "average"
"""The name of the mean over targets in columns of target names."""
PROBLEMS = ("diverged", "failed", "timeout", "oom", "skipped", "missing")
"""The statuses of runs that are not ok, the worst first."""

_PLANNED = ("experiment", "dataset", "task", "target", "method", "reference", "seed", "candidate", "key")
TEXTS = frozenset(
    {
        *("suite", "experiment", "dataset", "task", "target", "method", "status", "message", "device"),
        *("device_name", "stack_note", "torch", "numba", "python", "numpy", "platform", "distributions", "put_back"),
    }
)
WHOLE = ("candidate", "n_test", "n_train", "n_correct", "steps", "stack")
_REAL = ("sum_squared_error", "score", "train_seconds", "effective_sample_size", "weights_norm")
_RUN = ("experiment", "target", "method", "seed", "candidate")
"""The columns that identify a row."""
COLUMNS = (
    *("suite", "experiment", "dataset", "task", "target", "method", "reference", "seed", "candidate"),
    *("key", "status", "n_test", "n_correct", "sum_squared_error", "score", "message", "train_seconds", "steps"),
    *("device", "device_name", "stack", "stack_note", "torch", "numba", "python", "numpy", "platform"),
    *("distributions", "effective_sample_size", "weights_norm", "target_labels", "put_back", "n_train"),
)
"""The columns of a frame of runs, explained in docs/results.md; columns of validators and distributions follow."""


def load_results(folder: str | Path, *, metric: str | Sequence[str] = ()) -> ResultsFrame:
    """Reads a result folder.

    Args:
        folder: a result folder, such as `results/quickstart`.
        metric: one or several metrics to use instead of the suite's, such as `macro_f1`, if the records hold the counts
            for them. Each has a column `metric:NAME`; `score` is the first that suits the experiment's task.

    Returns:
        One row per planned run, in the plan's order: experiments, methods, targets, seeds, candidates. `results` holds
        the `plan` without its cells, the `folder` and its `store`, the keys of cells that are `damaged` (without a
        result) or `conflicting`, and `fault_lines` with a line for each such record.

    Raises:
        StoreError: it is not a result folder, cannot be read, or has a record that is ok but has no possible outcome.
        BenchError: a metric suits no experiment's task, is not installed or raises, or no run has any of the metrics.
    """
    folder = argument("folder", folder, str | Path)
    metric = argument("metric", metric, str | Sequence[str])
    store = Store(Path(folder))
    return read_runs(store, store.read_plan(), [metric] if isinstance(metric, str) else metric)


RUNS = FrameSchema("runs", "load_results", COLUMNS, ("target", "status"), (), load_results)


def runs_of(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """The runs of a result folder, or of a frame from `load_results`, after a check that nothing but rows was left out.

    Raises:
        TypeError, ValueError: it is neither a path nor such a frame.
        BenchError: the folder cannot be read.
    """
    frame = RUNS.take(runs)
    if frame is runs:
        for why in _faults(frame):
            RUNS.refuse(why)
        default_scores(frame)  # refuses outcomes that are not possible
    return frame


def _faults(runs: pd.DataFrame) -> Iterator[str]:
    """What is wrong with a frame of runs that someone may have changed."""
    results = known_results(runs)
    if results is None:
        yield "has lost its plan, as it does where frames are joined or rebuilt"
        return
    if not runs.index.is_unique:
        yield "has a row label twice"
    if runs.duplicated([*_RUN]).any():
        yield "has a run twice"
    yield from _unplanned(runs, results.plan)
    scores = [name for name in runs if str(name).startswith((VALIDATOR, METRIC))]
    for name in ("seed", *WHOLE, *_REAL, *scores):
        if not is_numeric_dtype(runs[name]):
            yield f"has other values than numbers in {name!r}"
    if not {*runs["status"].unique()} <= {"ok", *PROBLEMS}:
        yield "has an unknown status"
    keys = recorded_runs(runs)["key"]
    if not all(isinstance(key, str) for key in keys):
        yield "has a run without its key"


def _unplanned(runs: pd.DataFrame, plan: Plan) -> Iterator[str]:
    methods: set[tuple[str, ...]] = set()
    targets: set[tuple[str, ...]] = set()
    for table in plan.experiments:
        methods |= {(table.name, table.dataset, table.task, method.name) for method in table.methods}
        targets |= {(table.name, target) for target in table.targets}
    yield from _unknown(runs[["experiment", "dataset", "task", "method"]], methods)
    yield from _unknown(runs[["experiment", "target"]], targets)


def _unknown(places: pd.DataFrame, planned: Collection[tuple[str, ...]]) -> Iterator[str]:
    """Names the first place that is not planned, if there is any."""
    rows = places.drop_duplicates().astype(object)
    unknown = set(rows.itertuples(index=False, name=None)).difference(planned)
    if unknown:
        first = min(unknown, key=repr)
        yield f"has {', '.join(map(repr, first))} in a row, which its plan lacks"


def read_runs(store: Store, plan: Plan, metrics: Sequence[str] = ()) -> ResultsFrame:
    """The runs of a plan with the records of a store, scored by the plan's metrics or the named ones.

    Raises:
        BenchError: a record cannot be read, is ok without a possible outcome, or a metric cannot be computed.
    """
    store.refresh()
    keys = dict.fromkeys(cell.key for cell in plan.cells)
    heads = [head for head in map(store.latest, keys) if head is not None]
    rows = recorded_rows(heads)
    damaged = store.damaged.intersection(keys) - store.results.keys()
    conflicts = store.conflicting(keys)
    results = Results(
        plan,
        str(store.folder),
        store,
        damaged=tuple(damaged),
        conflicting=tuple(conflicts),
        fault_lines=(*store.drain_warnings(), *conflicts.values()),
    )
    runs = _scored(results, rows)
    if metrics:  # the suite's own metric has chosen on tuning seeds
        runs = _scored(results, rows, metrics, results_of(runs).choices)
        refuse_unmeasured(runs, metrics)
    return runs


def tuned(plan: Plan, store: Store | None) -> Choices:
    """What the criteria of a plan choose, from the records at the tuning seeds."""
    tables = []
    seeds = {}
    for table in plan.experiments:
        if table.tuning is not None:
            tables.append(table)
            seeds[table.name] = table.tuning.seeds
    cells = tuple(cell for cell in plan.cells if cell.seed in seeds.get(cell.experiment, ()))
    part = replace(plan, experiments=tuple(tables), cells=cells)
    runs = runs_frame(Results(part), recorded_rows([])) if store is None else read_runs(store, part)
    return results_of(runs).choices or choices_of(runs)


def _scored(
    results: Results, rows: pd.DataFrame, metrics: Sequence[str] = (), choices: Choices | None = None
) -> ResultsFrame:
    plan, wanted = with_metrics(results.plan, metrics)
    runs = runs_frame(replace(results, plan=plan), rows)
    return chosen_on_tuning_seeds(measured(runs, wanted), choices)


def runs_frame(results: Results, rows: pd.DataFrame) -> ResultsFrame:
    """Builds the frame of a plan's runs from the rows of records by key; a run without a record is missing."""
    plan = results.plan
    runs = _planned(plan)
    recorded = rows.reindex(runs["key"]).reset_index(drop=True)
    runs = pd.concat([runs.assign(suite=plan.suite), recorded], axis=1)
    runs["status"] = runs["status"].astype(object).fillna("missing")
    runs["score"] = default_scores(runs)
    return with_results(typed(runs), replace(results, plan=replace(plan, cells=())))


def typed(runs: pd.DataFrame) -> pd.DataFrame:
    """Puts the columns of a frame of runs into their order and types; other columns follow, sorted by name."""
    more = sorted({str(name) for name in runs} - set(COLUMNS))
    runs = runs.reindex(columns=[*COLUMNS, *more])
    versions = [name for name in more if name.startswith(VERSION)]
    texts = (*TEXTS, *versions)
    runs = runs.astype(dict.fromkeys(texts, object)).astype(dict.fromkeys(texts, "category"))
    runs = runs.astype(dict.fromkeys(WHOLE, "Int64") | dict.fromkeys(_REAL, "float64"))
    return runs.astype({"reference": bool, "seed": "int64", "target_labels": "boolean", "key": object})


def experiments(runs: pd.DataFrame) -> Iterator[tuple[Experiment, pd.DataFrame]]:
    """Yields each experiment of the plan that has rows, with these rows."""
    for experiment in results_of(runs).plan.experiments:
        rows = own_rows(experiment, runs)
        if len(rows):
            yield experiment, rows


def own_rows(experiment: Experiment, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of an experiment."""
    return frame[(frame["experiment"] == experiment.name).to_numpy(dtype=bool)]


def _planned(plan: Plan) -> pd.DataFrame:
    """Each planned run, including places of an experiment's grid that have no cell, with the columns `_PLANNED`."""
    cells: dict[str, list[PlannedRun]] = {}
    for cell in plan.cells:
        cells.setdefault(cell.experiment, []).append(cell)
    parts = [_planned_runs(table, cells.get(table.name, ())) for table in plan.experiments]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*_PLANNED])


def _planned_runs(table: Experiment, cells: Sequence[PlannedRun]) -> pd.DataFrame:
    """The planned runs of one experiment in the order of its grid: methods, targets, seeds, candidates."""
    names = [method.name for method in table.methods]
    shape = (len(names), len(table.targets), len(table.every_seed))
    codes = (
        pd.Index(names).get_indexer(pd.Index([cell.method for cell in cells])),
        pd.Index(table.targets).get_indexer(pd.Index([cell.target for cell in cells])),
        pd.Index(table.every_seed).get_indexer(pd.Index([cell.seed for cell in cells])),
    )
    taken = np.ravel_multi_index(codes, shape)
    is_reported = np.broadcast_to(np.isin(table.every_seed, table.seeds), shape)
    free = np.setdiff1d(np.flatnonzero(is_reported), taken)
    places = np.concatenate([taken, free])
    order = np.argsort(places, kind="stable")
    method, target, seed = np.unravel_index(places[order], shape)
    more = [None] * len(free)
    texts = {
        "target": _objects(table.targets)[target],
        "method": _objects(names)[method],
        "candidate": _objects([*(cell.candidate for cell in cells), *more])[order],
        "key": _objects([*(cell.key or None for cell in cells), *more])[order],
    }
    runs = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in texts.items()})
    return runs.assign(
        experiment=table.name,
        dataset=table.dataset,
        task=table.task,
        reference=runs["method"].isin(table.references),
        seed=np.array(table.every_seed, np.int64)[seed],
    )


def _objects(values: Sequence[Any]) -> NDArray[np.object_]:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def default_scores(runs: pd.DataFrame) -> Any:
    """Computes accuracies in percent, or mean squared errors; NaN for runs not ok, or without labels.

    Raises:
        StoreError: a run is ok without a possible outcome.
    """
    counts = ("n_test", "n_correct", "sum_squared_error")
    tests, correct, error = (runs[name].to_numpy("float64", na_value=np.nan) for name in counts)
    classifies = (runs["task"] == "classification").to_numpy()
    regresses = (runs["task"] == "regression").to_numpy()
    ok = are_ok(runs)
    right = np.isnan(error) & (correct >= 0) & (correct <= tests)
    near = np.isnan(correct) & (error >= 0) & regresses
    unlabelled = (tests == 0) & np.isnan(correct) & np.isnan(error)
    labelled = ok & ~unlabelled
    impossible = labelled & ~((tests > 0) & np.where(classifies, right, near))
    for key, task in runs.loc[impossible, ["key", "task"]].itertuples(index=False):
        raise StoreError(
            f"record {key}: ok, but without a possible outcome of a {task} run; remove its line from the folder's log "
            "or records.jsonl.gz; then `msda-bench run` replaces it"
        )
    totals = np.where(classifies, 100 * correct, error)
    return np.divide(totals, tests, out=np.full(len(runs), np.nan), where=labelled)


def load_curves(runs: str | Path | pd.DataFrame, most: int | None = None) -> pd.DataFrame:
    """Loads risks, gaps and weights over the epochs, for the selected runs that are ok or diverged.

    Args:
        runs: a result folder, or a frame from `load_results`, whose folder is read.
        most: the maximum number of runs to read per experiment: all methods and targets of its first seeds. None
            reads all runs.

    Returns:
        One row for each run, epoch and group of sources: `experiment, target, method, seed, status, epoch` (from 1),
        `source` (pooled domains are joined by ` + `), `part_of` (for a part of a split source its domain, otherwise the
        source), `pooled` (whether several domains are sampled as one), `risk` and `gap` (means over the steps of the
        epoch) and `weight` (exponential moving average over the steps, decay 0.9, at the end of the epoch).

    Raises:
        StoreError: the folder or a record cannot be read.
    """
    most = argument("most", most, PositiveInt | None)
    chosen = select(runs_of(runs))
    if most is not None:
        kept: list[int] = []
        for _, own in experiments(chosen):
            kept.extend(_first_seeds(own, most).index)
        chosen = chosen.loc[kept]
    curves = []
    rows = []
    names: dict[str, int] = {}
    trained = chosen[chosen["status"].isin(["ok", "diverged"])]
    for row, record, _ in read_records(trained):
        if record.curves is not None and record.curves.weights:
            curves.append(_curve(record, record.curves, names))
            rows.append(row)
    lengths = [len(curve["epoch"]) for curve in curves]
    places = chosen[["experiment", "target", "method", "seed", "status"]]
    frame = places.loc[np.repeat(rows, lengths)].reset_index(drop=True)
    for name in ("epoch", "source", "part_of", "pooled", "risk", "gap", "weight"):
        values: Any = np.concatenate([curve[name] for curve in curves]) if curves else []
        if name in {"source", "part_of"}:  # millions of rows with few names
            codes = np.asarray(values, np.int32)
            values = pd.Categorical.from_codes(codes, pd.Index(list(names), dtype=object))
        frame[name] = values
    return frame


_DRAWN = ("experiment", "target", "method", "source", "pooled", "epoch", "risk", "gap", "weight")
CURVES = FrameSchema("curves", "load_curves", ("seed", *_DRAWN), _DRAWN[:4], _DRAWN[-4:], load_curves)


def _first_seeds(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    """The runs of as many first seeds as `most` runs allow, but of one seed at least."""
    seeds = rows["seed"].unique()
    runs_of_a_seed = len(rows) / len(seeds)
    return rows[rows["seed"].isin(seeds[: max(1, int(most / runs_of_a_seed))])]


def _curve(record: Record, curves: Curves, names: dict[str, int]) -> dict[str, Any]:
    """A record's curves, epoch by epoch and within an epoch group by group; `names` numbers the sources."""
    epochs = len(curves.weights)
    groups = [" + ".join(group) for group in curves.groups]
    parents = _parents(record.cell)
    wholes = [parents.get(group, group) for group in groups]
    for name in (*groups, *wholes):
        names.setdefault(name, len(names))
    return {
        "epoch": np.repeat(np.arange(1, epochs + 1), len(groups)),
        "source": np.tile([names[group] for group in groups], epochs),
        "part_of": np.tile([names[whole] for whole in wholes], epochs),
        "pooled": [len(group) > 1 for group in curves.groups] * epochs,
        "risk": np.ravel(curves.risks).astype(float),
        "gap": np.ravel(curves.gaps).astype(float),
        "weight": np.ravel(curves.weights).astype(float),
    }


def _parents(cell: Mapping[str, Any]) -> dict[str, str]:
    """By part of a split source, the source."""
    parents: dict[str, str] = {}
    split = cell.get("split_sources")
    if not split:
        return parents
    for source in cell.get("sources", ()):
        parts = source_parts(source, Splitting(**split))
        parents.update(dict.fromkeys(parts, source))
    return parents
