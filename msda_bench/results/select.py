"""Selects a method's candidate for each target and seed: the one that the criterion scores best.

Only recorded runs are used, so that another criterion needs no training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from msda_bench.results.estimates import mean_of, tied
from msda_bench.results.recorded import VALIDATOR
from msda_bench.suite.plan import LEAVE_ONE_OUT, ORACLE, Experiment, Method

SELECTED = "selected"
"""The key in `attrs` that marks a frame from `select`."""
_OF_PLAN = ["suite", "experiment", "dataset", "task", "target", "method", "reference", "seed", "status"]
_ENDED = {"ok", "diverged"}


def select(runs: pd.DataFrame, by: str | None = None) -> pd.DataFrame:
    """Keeps one row per run: that of its selected candidate, or of the first among equally good ones.

    A run with an unfinished candidate takes its status and message. Diverged candidates count as finished, but cannot
    be selected: a run whose candidates all diverged has diverged. A run whose candidates have no score for the
    selection is missing.

    Args:
        runs: a frame from `load_results`. Runs without candidates and frames from `select` are returned unchanged.
        by: a criterion instead of the plan's: a validator, `leave_one_source_out` or `oracle`.
    """
    if SELECTED in runs.attrs or runs["candidate"].isna().all():
        return runs
    searches = Searches(runs)
    choices = [choice for table, method in searches.methods() for choice in searches.choices(table, method, by)]
    is_missing = dict.fromkeys(np.flatnonzero(searches.runs["candidate"].isna()).tolist(), False)
    is_missing |= {choice.row: choice.is_missing for choice in choices}
    rows = sorted(is_missing)
    chosen, missing = searches.runs.iloc[rows].copy(), np.array([is_missing[row] for row in rows])
    recorded = chosen.columns.difference(_OF_PLAN)
    chosen[recorded] = chosen[recorded].mask(np.repeat(missing[:, np.newaxis], len(recorded), axis=1))
    chosen["left_out"] = chosen["left_out"].mask(chosen["left_out"].notna())
    chosen["status"] = chosen["status"].astype(object).mask(missing, "missing").astype("category")
    chosen.attrs = {**runs.attrs, SELECTED: True}
    return chosen


class Candidate(NamedTuple):
    """A candidate of a run: its number, the position of its row, and those of its rows with a source as the target."""

    number: int
    row: int
    left_out: tuple[int, ...]

    def rows(self, by: str) -> tuple[int, ...]:
        """The rows that a criterion needs; the run on the target comes first."""
        return (self.row, *self.left_out) if by == LEAVE_ONE_OUT else (self.row,)


@dataclass(frozen=True)
class Choice:
    """The outcome of a selection.

    `row` is the position of the row that represents the run: that of the selected candidate, if `is_selected`, or one
    that shows why none is. `is_missing` tells that no row does, because the candidates are ok but have no score. The
    other fields count candidates that could not be selected.
    """

    row: int
    is_selected: bool = False
    is_missing: bool = False
    unfinished: int = 0
    diverged: int = 0
    unscored: int = 0


class Searches:
    """The candidates of all runs, and their scores by each criterion."""

    def __init__(self, runs: pd.DataFrame) -> None:
        self.runs = runs if runs.index.is_monotonic_increasing else runs.sort_index(kind="stable")
        self._status = self.runs["status"].tolist()
        signs = {table.name: table.measure.sign for table in self.runs.attrs["plan"].experiments}
        self._merits: list[float] = (self.runs["score"] * self.runs["experiment"].astype(object).map(signs)).tolist()
        self._scores: dict[str, list[float]] = {}
        self._candidates = {} if SELECTED in runs.attrs else _candidates(self.runs)

    def methods(self) -> list[tuple[Experiment, Method]]:
        """The methods whose settings are selected, in the plan's order."""
        return [
            (table, method)
            for table in self.runs.attrs["plan"].experiments
            for method in table.methods
            if method.search is not None and (table.name, method.name) in self._candidates
        ]

    def of(self, table: Experiment, method: Method) -> dict[tuple[str, int], list[Candidate]]:
        """The candidates of a method's runs by target and seed."""
        return self._candidates[table.name, method.name]

    def choices(self, table: Experiment, method: Method, by: str | None = None) -> list[Choice]:
        """The choice for each run of a method, by a criterion or by the method's own."""
        criterion = by or (method.search.by if method.search else ORACLE)
        return [self.choose(candidates, criterion) for candidates in self.of(table, method).values()]

    def choose(self, candidates: Sequence[Candidate], by: str) -> Choice:
        """The choice among the candidates of one run."""
        statuses = [{row: self._status[row] for row in candidate.rows(by)} for candidate in candidates]
        n_diverged = sum("diverged" in by_row.values() for by_row in statuses)
        every = {row: status for by_row in statuses for row, status in by_row.items()}
        if waiting := {row: status for row, status in every.items() if status not in _ENDED}:
            unfinished = sum(not _ENDED.issuperset(by_row.values()) for by_row in statuses)
            failed = [row for row, status in waiting.items() if status != "missing"]
            return Choice([*failed, *waiting][0], unfinished=unfinished, diverged=n_diverged)
        scores = {candidate: score for candidate in candidates if (score := self.score(candidate, by)) is not None}
        n_unscored = len(candidates) - n_diverged - len(scores)
        if scores:
            best = max(scores, key=scores.__getitem__)
            return Choice(best.row, is_selected=True, diverged=n_diverged, unscored=n_unscored)
        diverged = [row for row, status in every.items() if status == "diverged"]
        row = [*diverged, *every][0]
        return Choice(row, is_missing=not diverged, diverged=n_diverged, unscored=n_unscored)

    def score(self, candidate: Candidate, by: str) -> float | None:
        """The score of a candidate by a criterion; higher is better. None unless all of its runs are ok."""
        if any(self._status[row] != "ok" for row in candidate.rows(by)):
            return None
        if by == ORACLE:
            return self.merit(candidate.row)
        if by == LEAVE_ONE_OUT:
            merits = [merit for row in candidate.left_out if (merit := self.merit(row)) is not None]
            return tied(mean_of(merits)) if merits and len(merits) == len(candidate.left_out) else None
        if by not in self._scores:
            column = self.runs.get(f"{VALIDATOR}{by}")
            self._scores[by] = [np.nan] * len(self.runs) if column is None else column.tolist()
        score = self._scores[by][candidate.row]
        return None if math.isnan(score) else score

    def merit(self, row: int) -> float | None:
        """The test score of an ok run; errors are negated.

        None if its record has no value of the metric, which validators do not need.
        """
        merit = self._merits[row]
        return None if math.isnan(merit) else merit


def _candidates(runs: pd.DataFrame) -> dict[tuple[str, str], dict[tuple[str, int], list[Candidate]]]:
    """The candidates by experiment and method, then by target and seed, in the order of their numbers."""
    columns = ("experiment", "method", "target", "seed", "candidate", "left_out")
    tried = runs["candidate"].notna().to_numpy()
    places: dict[tuple[str, str], dict[tuple[str, int], dict[int, list[int]]]] = {}
    rows = zip(np.flatnonzero(tried).tolist(), *(runs.loc[tried, name].tolist() for name in columns), strict=True)
    for row, table, method, target, seed, candidate, left_out in rows:
        own = places.setdefault((table, method), {}).setdefault((target, seed), {}).setdefault(candidate, [])
        own.insert(len(own) if isinstance(left_out, str) else 0, row)
    return {
        place: {
            run: [Candidate(number, rows[0], tuple(rows[1:])) for number, rows in sorted(of_run.items())]
            for run, of_run in of_method.items()
        }
        for place, of_method in places.items()
    }
