"""A result folder as a data frame: one row a planned run, missing ones included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from msda_bench.errors import StoreError
from msda_bench.results.metric import measured, refuse_unmeasured, with_metrics
from msda_bench.store import Record, Store
from msda_bench.store.columns import Columns, columns_of, read_columns
from msda_bench.store.record import Curves
from msda_bench.suite.cell import Splitting
from msda_bench.suite.plan import Experiment, Plan, PlannedCell
from msda_bench.suite.sources import source_parts

AVERAGE = "average"
"""The entry for means over targets in the column of target names."""
PROBLEMS = ("diverged", "failed", "timeout", "oom", "skipped", "missing")
"""The statuses of a run other than ok, the worst first."""
VALIDATOR = "validator:"
"""Prefix of the columns with validators' scores."""
VERSION = "version:"
"""Prefix of the columns with the versions of the distributions that made a run."""

_PLANNED = (
    *("experiment", "dataset", "task", "target", "method", "reference", "seed", "candidate", "left_out", "key"),
)
_TEXTS = (
    *("suite", "experiment", "dataset", "task", "target", "method", "left_out", "status", "message", "device"),
    *("device_name", "stack_note", "torch", "numba", "python", "numpy", "platform", "distributions", "put_back"),
)
_WHOLE = ("candidate", "n_test", "n_correct", "steps", "stack")
_REAL = ("sum_squared_error", "score", "train_seconds", "effective_sample_size", "weights_norm")
COLUMNS = (
    *("suite", "experiment", "dataset", "task", "target", "method", "reference", "seed", "candidate", "left_out"),
    *("key", "status", "n_test", "n_correct", "sum_squared_error", "score", "message", "train_seconds", "steps"),
    *("device", "device_name", "stack", "stack_note", "torch", "numba", "python", "numpy", "platform"),
    *("distributions", "effective_sample_size", "weights_norm", "target_labels", "put_back"),
)
"""The columns of a frame of runs, explained in docs/results.md; one for each validator and distribution follows."""


def load_results(folder: str | Path, *, repair: bool = False, metric: str | Sequence[str] = ()) -> pd.DataFrame:
    """Reads a result folder.

    Args:
        folder: a result folder, such as `results/quickstart`.
        repair: whether damaged records are set aside; otherwise the folder does not change, except for the `.index`
            that makes reading a large folder again fast.
        metric: instead of the suite's, a metric for which records hold enough counts, such as `macro_f1`, or several:
            each has a column `metric:NAME`, and `score` is the first that suits the experiment's task.

    Returns:
        One row a planned run, in the plan's order: experiments, methods, targets, seeds, candidates. `attrs` holds the
        `plan` without its cells, the `folder`, the store's `faults` and `fault_lines`, a line for each damaged or
        conflicting record.

    Raises:
        StoreError: it is not a result folder, cannot be read, or holds a record that is ok without a possible outcome.
        BenchError: a metric is of another task, is not installed, or raises; or no run has any of the named ones.
    """
    store = Store(Path(folder), repair=repair)
    return read_runs(store, store.read_plan(), [metric] if isinstance(metric, str) else metric)


def read_runs(store: Store, plan: Plan, metrics: Sequence[str] = ()) -> pd.DataFrame:
    """The runs of a plan, with a store's records, by the plan's metrics or the named ones.

    Raises:
        BenchError: a record cannot be read, or is ok without a possible outcome; or a metric cannot be computed.
    """
    plan, wanted = with_metrics(plan, metrics)
    runs = runs_frame(plan, read_columns(store, (cell.key for cell in plan.cells)), store.folder)
    runs = measured(runs, wanted)
    refuse_unmeasured(runs, metrics)
    return runs


def runs_frame(plan: Plan, records: Columns | Mapping[str, Record], folder: Path | None = None) -> pd.DataFrame:
    """The frame of a plan's runs from records by key; a run without a record is missing.

    Raises:
        StoreError: a run is ok without a possible outcome.
    """
    columns = records if isinstance(records, Columns) else columns_of(records)
    runs = pd.DataFrame.from_records(_planned(plan), columns=_PLANNED)
    places = {key: place for place, key in enumerate(columns.keys)}
    recorded = _recorded(columns).reindex([places.get(key, -1) for key in runs["key"]]).reset_index(drop=True)
    runs = pd.concat([runs.assign(suite=plan.suite), recorded], axis=1)
    runs["status"] = runs["status"].astype(object).fillna("missing")
    runs["score"] = default_scores(runs)
    runs = typed(runs)
    runs.attrs = {
        "plan": replace(plan, cells=()),
        "folder": None if folder is None else str(folder),
        "faults": columns.faults,
        "fault_lines": columns.lines,
    }
    return runs


def typed(runs: pd.DataFrame) -> pd.DataFrame:
    """The columns of a frame of runs in their order and with their types; other columns follow, sorted by name."""
    more = sorted({str(name) for name in runs} - set(COLUMNS))
    runs = runs.reindex(columns=[*COLUMNS, *more])
    versions = [name for name in more if name.startswith(VERSION)]
    texts = (*_TEXTS, *versions)
    runs = runs.astype(dict.fromkeys(texts, object)).astype(dict.fromkeys(texts, "category"))
    runs = runs.astype(dict.fromkeys(_WHOLE, "Int64") | dict.fromkeys(_REAL, "float64"))
    return runs.astype({"reference": bool, "seed": "int64", "target_labels": "boolean", "key": object})


def experiments(runs: pd.DataFrame) -> Iterator[tuple[Experiment, pd.DataFrame]]:
    """Each experiment of the plan that has rows, with its rows."""
    of = runs["experiment"].astype(object)
    for experiment in runs.attrs["plan"].experiments:
        rows = runs[of == experiment.name]
        if len(rows):
            yield experiment, rows


def own_rows(experiment: Experiment, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of an experiment, with the frame's `attrs`."""
    found = frame[(frame["experiment"].astype(object) == experiment.name).to_numpy(dtype=bool)]
    found.attrs = frame.attrs
    return found


def _planned(plan: Plan) -> Iterator[tuple[Any, ...]]:
    """Every planned run, also those of an experiment's grid without a cell, as values of `_PLANNED`."""
    found: dict[tuple[str, str, str, int], list[PlannedCell]] = {}
    for cell in plan.cells:
        found.setdefault((cell.experiment, cell.method, cell.target, cell.seed), []).append(cell)
    for table in plan.experiments:
        for method, target, seed in product(table.methods, table.targets, table.seeds):
            place = table.name, method.name, target, seed
            for cell in found.get(place, [PlannedCell(*place, key="")]):
                run = target, method.name, method.reference, seed, cell.candidate, cell.left_out, cell.key or None
                yield table.name, table.dataset, table.task, *run


def _recorded(columns: Columns) -> pd.DataFrame:
    """The recorded values, a row for each key."""
    values = columns.values
    found: dict[str, Any] = {name: values[name] for name in values if name not in {"distributions", "validation"}}
    for name in _WHOLE:
        if name in found:
            found[name] = pd.array([None if value is None else int(value) for value in found[name]], dtype="Int64")
    made = values["distributions"]
    words = {pairs: "; ".join(f"{name} {version}" for name, version in pairs) for pairs in set(made)}
    found["distributions"] = [words[pairs] for pairs in made]
    for name in {name for pairs in words for name, _ in pairs}:
        versions = {pairs: dict(pairs).get(name) for pairs in words}
        found[f"{VERSION}{name}"] = [versions[pairs] for pairs in made]
    validated = [dict(pairs) for pairs in values["validation"]]
    for name in {name for scores in validated for name in scores}:
        found[f"{VALIDATOR}{name}"] = np.array([scores.get(name, np.nan) for scores in validated], float)
    return pd.DataFrame(found)


def default_scores(runs: pd.DataFrame) -> Any:
    """Accuracies in percent, or mean squared errors; NaN for a run that is not ok.

    Raises:
        StoreError: a run is ok without a possible outcome.
    """
    tests, correct, error = (
        runs[name].to_numpy("float64", na_value=np.nan) for name in ("n_test", "n_correct", "sum_squared_error")
    )
    classifies, ok = (runs["task"] == "classification").to_numpy(), (runs["status"] == "ok").to_numpy()
    right = np.isnan(error) & (correct >= 0) & (correct <= tests)
    near = np.isnan(correct) & (error >= 0) & (runs["task"] == "regression").to_numpy()
    impossible = ok & ~((tests > 0) & np.where(classifies, right, near))
    for key, task in runs.loc[impossible, ["key", "task"]].itertuples(index=False):
        raise StoreError(
            f"record {key}: ok, but without a possible outcome of a {task} run; move its file away, and the same "
            "`msda-bench run` replaces it"
        )
    return np.divide(np.where(classifies, 100 * correct, error), tests, out=np.full(len(runs), np.nan), where=ok)


def load_curves(runs: str | Path | pd.DataFrame, most: int | None = None) -> pd.DataFrame:
    """Risks, gaps and weights over the epochs of the selected runs that ended.

    Args:
        runs: a result folder, or a frame of `load_results`, whose folder is read.
        most: the maximum number of runs of an experiment to read, all methods and targets of its first seeds; all if
            None.

    Returns:
        One row for each run, epoch and group of sources: `experiment, target, method, seed, status, epoch` (from 1),
        `source` (domains that are sampled as one are joined by ` + `), `part_of` (the domain of a split source's part,
        else the source), `pooled` (whether several domains are sampled as one), `risk` and `gap` (means over the
        epoch's steps) and `weight` (exponential moving average over the steps, decay 0.9, at the end of the epoch).

    Raises:
        StoreError: the folder or a record cannot be read.
    """
    from msda_bench.results.select import select

    chosen = select(load_results(runs) if isinstance(runs, str | Path) else runs)
    if most is not None:
        chosen = chosen.loc[[row for _, rows in experiments(chosen) for row in _first_seeds(rows, most).index]]
    curves, rows, names = [], [], dict[str, int]()
    for row, record in read_records(chosen[chosen["status"].isin(["ok", "diverged"])]):
        if record.curves is not None and record.curves.weights:
            curves.append(_curve(record, record.curves, names))
            rows.append(row)
    places = chosen[["experiment", "target", "method", "seed", "status"]]
    lengths = [len(curve["epoch"]) for curve in curves]
    columns = ("epoch", "source", "part_of", "pooled", "risk", "gap", "weight")
    found: dict[str, Any] = {
        name: np.concatenate([curve[name] for curve in curves]) if curves else [] for name in columns
    }
    for name in ("source", "part_of"):  # millions of rows of a few names
        codes = np.asarray(found[name], np.int32)
        found[name] = pd.Categorical.from_codes(codes, pd.Index(list(names), dtype=object))
    return places.loc[np.repeat(rows, lengths)].reset_index(drop=True).assign(**found)


def _first_seeds(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    """The runs of an experiment's first seeds, at least one seed, with at most `most` runs."""
    seeds = rows["seed"].unique()
    runs_of_a_seed = len(rows) / len(seeds)
    return rows[rows["seed"].isin(seeds[: max(1, int(most / runs_of_a_seed))])]


def load_cells(runs: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The cell of each record of a frame's folder, as plain JSON values, by key.

    Raises:
        StoreError: a record cannot be read.
    """
    return {record.key: record.cell for _, record in read_records(runs, curves=False)}


def read_records(runs: pd.DataFrame, *, curves: bool = True) -> Iterator[tuple[Any, Record]]:
    """The rows' labels and records, read again from their folder, or from that of each row in merged runs.

    Skips rows without a record, and frames that were not read from a folder.

    Raises:
        StoreError: a record cannot be read, or is gone.
    """
    for row, key, store in stored(runs):
        yield row, read_record(store, key, curves=curves)


def read_record(store: Store, key: str, *, curves: bool = True) -> Record:
    """The result of a cell that has a record, or its latest failure.

    Raises:
        StoreError: it cannot be read, or is gone.
    """
    record = store.read(key, curves=curves) or store.last_failure(key)
    if record is None:
        raise StoreError(f"{store.folder}: the record of cell {key} is gone; run the command again")
    return record


def stored(runs: pd.DataFrame) -> Iterator[tuple[Any, str, Store]]:
    """The label, key and store of each row that has a record in a folder."""
    runs = runs[(runs["status"] != "missing").to_numpy()]
    folders = runs["folder"] if "folder" in runs else pd.Series(runs.attrs.get("folder"), runs.index, dtype=object)
    stores = {folder: Store(Path(folder), repair=False) for folder in folders.dropna().unique()}
    for row, key, folder in zip(runs.index, runs["key"], folders, strict=True):
        if folder in stores:
            yield row, key, stores[folder]


def _curve(record: Record, curves: Curves, names: dict[str, int]) -> dict[str, Any]:
    """A record's curves, epoch by epoch, each epoch group by group; `names` numbers the sources."""
    epochs, groups = len(curves.weights), [" + ".join(group) for group in curves.groups]
    split = record.cell.get("split_sources")
    parents = {
        part: source
        for source in record.cell.get("sources", ())
        if split
        for part in source_parts(source, Splitting(**split))
    }
    return {
        "epoch": np.repeat(np.arange(1, epochs + 1), len(groups)),
        "source": np.tile([names.setdefault(group, len(names)) for group in groups], epochs),
        "part_of": np.tile([names.setdefault(parents.get(group, group), len(names)) for group in groups], epochs),
        "pooled": [len(group) > 1 for group in curves.groups] * epochs,
        "risk": np.ravel(curves.risks).astype(float),
        "gap": np.ravel(curves.gaps).astype(float),
        "weight": np.ravel(curves.weights).astype(float),
    }
