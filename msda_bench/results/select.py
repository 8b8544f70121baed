"""Selects a method's candidate for each target and seed, or once for each target: the one that a criterion scores best.

Only recorded runs are used, so that another criterion needs no training.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from msda_bench.errors import BenchError
from msda_bench.results.searches import CHOICES, SELECTED, Choices, Searches
from msda_bench.suite.plan import ORACLE, Experiment, Tuning

TRACK = "track"
"""The key in `attrs` of the criterion that was asked for instead of the plan's."""
GAPS = "gaps"
"""The key in `attrs` of the headroom, by experiment and seed, with the settings that the oracle chose."""
_OF_PLAN = ["suite", "experiment", "dataset", "task", "target", "method", "reference", "seed", "status"]


@dataclass(frozen=True)
class Gaps:
    """What the reference of the headroom gains over the baseline, by experiment and seed."""

    of: Mapping[str, Mapping[int, float]] = field(default_factory=dict)

    def __deepcopy__(self, memo: dict[int, Any]) -> Gaps:
        """Itself, which never changes; see `Plan`."""
        return self


def select(runs: pd.DataFrame, by: str | None = None) -> pd.DataFrame:
    """Keeps one row per run: that of its selected candidate, or of the first among equally good ones.

    A run with an unfinished candidate takes its status and message. Diverged candidates count as finished, but cannot
    be selected: a run whose candidates all diverged has diverged. A run whose candidates have no score for the
    selection is missing.

    Where settings are chosen once, on tuning seeds, the rows are those of the suite's other seeds, all with the
    candidate that a track chose; they are missing as long as a candidate has no run at a tuning seed.

    Args:
        runs: a frame from `load_results`. Runs without candidates and frames from `select` are returned unchanged.
        by: a criterion instead of the plan's: a validator, `leave_one_source_out` or `oracle`; a track, `first` among
            them, where settings are chosen on tuning seeds.

    Raises:
        BenchError: a criterion chose on tuning seeds what was not trained on the others.
    """
    if SELECTED in runs.attrs or runs["candidate"].isna().all():
        return runs
    searches = Searches(runs)
    of_runs = ((table, method) for table, method in searches.methods() if table.tuning is None)
    choices = [choice for table, method in of_runs for choice in searches.choices(table, method, by)]
    is_missing = dict.fromkeys(np.flatnonzero(searches.runs["candidate"].isna()).tolist(), False)
    tuned = [(table, table.tuning) for table in runs.attrs["plan"].experiments if table.tuning is not None]
    is_missing |= {choice.row: choice.is_missing for choice in choices} | _tuned_rows(searches, by, tuned)
    rows = sorted(is_missing)
    chosen, missing = searches.runs.iloc[rows].copy(), np.array([is_missing[row] for row in rows])
    if missing.any():
        recorded = chosen.columns.difference(_OF_PLAN)
        chosen[recorded] = chosen[recorded].mask(np.repeat(missing[:, np.newaxis], len(recorded), axis=1))
    chosen["left_out"] = chosen["left_out"].mask(chosen["left_out"].notna())
    chosen["status"] = chosen["status"].astype(object).mask(missing, "missing").astype("category")
    chosen.attrs = {**runs.attrs, SELECTED: True, GAPS: _gaps(searches)} | ({TRACK: by} if by is not None else {})
    return chosen


def _gaps(searches: Searches) -> Gaps:
    """What the reference of the headroom gains over the baseline, a mean over targets, where the oracle is a track."""
    tables = [
        (table, table.tuning)
        for table in searches.runs.attrs["plan"].experiments
        if table.headroom is not None and table.tuning is not None and ORACLE in table.tuning.tracks
    ]
    rows = [row for row, is_missing in _tuned_rows(searches, ORACLE, tables).items() if not is_missing]
    runs = searches.runs[["experiment", "method", "target", "seed", "status", "score"]].iloc[rows]
    gaps: dict[str, dict[int, float]] = {}
    for table, _ in tables:
        mine = runs[(runs["experiment"] == table.name) & (runs["status"] == "ok")].astype({"method": object})
        scores = mine.pivot(index="seed", columns=["method", "target"], values="score")
        if {table.headroom, table.baseline} <= {*scores.columns.get_level_values("method")}:
            gap = (scores[table.headroom] - scores[table.baseline]).dropna().mean(axis=1)
            gaps[table.name] = (table.measure.sign * gap).to_dict()
    return Gaps(gaps)


def _tuned_rows(searches: Searches, by: str | None, tables: Iterable[tuple[Experiment, Tuning]]) -> dict[int, bool]:
    """The row of each run of experiments that choose settings on tuning seeds, and whether there is none."""
    is_missing: dict[int, bool] = {}
    runs = searches.runs
    names = runs["experiment"].astype(object).to_numpy() if tables else np.array([])
    for table, tuning in tables:
        track = by or tuning.tracks[0]
        choices = {(method.name, target): once for method, target, once in searches.track(table, track)}
        rows = np.flatnonzero((names == table.name) & ~runs["seed"].isin(tuning.seeds).to_numpy())
        columns = (runs[name].iloc[rows].tolist() for name in ("method", "target", "seed", "candidate"))
        chosen: dict[tuple[str, str, int], int] = {}
        spare: dict[tuple[str, str, int], int] = {}
        for row, method, target, seed, candidate in zip(rows.tolist(), *columns, strict=True):
            once = choices.get((method, target))
            if once is not None and once.number is not None and candidate == once.number:
                chosen[method, target, seed] = row
            spare.setdefault((method, target, seed), row)
        if track not in tuning.tracks:
            absent = sum(run not in chosen or searches.is_absent(chosen[run]) for run in spare)
            if absent:
                what = f"what {track} chooses was not trained for {absent} of {len(spare)} runs"
                raise BenchError(f"{table.name}: {what}; add it to select.tracks and run the suite again")
        is_missing |= {chosen.get(run, row): run not in chosen for run, row in spare.items()}
    return is_missing


def choices_of(runs: pd.DataFrame) -> Choices:
    """What each track of suites with tuning seeds chooses."""
    searches = Searches(runs)
    tables = [table for table in runs.attrs["plan"].experiments if table.tuning is not None]
    return Choices(
        MappingProxyType({
            (table.name, method.name, target, track): once
            for table in tables
            for track in table.tuning.tracks
            for method, target, once in searches.track(table, track)
        })
    )  # fmt: skip


def chosen_on_tuning_seeds(runs: pd.DataFrame, choices: Choices | None = None) -> pd.DataFrame:
    """The runs with what the tracks choose in `attrs`, without rows of missing runs that no track chose."""
    tables = {table.name: table for table in runs.attrs["plan"].experiments if table.tuning is not None}
    if not tables:
        return runs
    choices = choices or choices_of(runs)
    columns = (runs[name].tolist() for name in ("experiment", "method", "target", "seed", "candidate", "status"))
    keep = [
        status != "missing"
        or table not in tables
        or seed in tables[table].tuning.seeds
        or candidate in (choices.numbers.get((table, method, target)) or {0})
        for table, method, target, seed, candidate, status in zip(*columns, strict=True)
    ]
    kept = runs[keep].reset_index(drop=True)
    kept.attrs = runs.attrs | {CHOICES: choices}
    return kept
