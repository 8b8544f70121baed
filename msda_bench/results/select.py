"""Selects a method's candidate for each target and seed: the one that the criterion scores best.

Only recorded runs are used, so that another criterion needs no training.
"""

from __future__ import annotations

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
_ENDED = ("ok", "diverged")


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
    trials = Trials(runs)
    choices = [choice for table, method in trials.methods() for choice in trials.choices(table, method, by)]
    places = [*np.flatnonzero(trials.runs["candidate"].isna()), *(choice.row for choice in choices)]
    nothing = {choice.row for choice in choices if not choice.stands}
    found = trials.runs.iloc[sorted(places)].copy()
    gaps = np.array([place in nothing for place in sorted(places)])
    rest = found.columns.difference(_OF_PLAN)
    found[rest] = found[rest].mask(np.repeat(gaps[:, np.newaxis], len(rest), axis=1))
    found["left_out"] = found["left_out"].mask(found["left_out"].notna())
    found["status"] = found["status"].astype(object).mask(gaps, "missing").astype("category")
    found.attrs = {**runs.attrs, SELECTED: True}
    return found


class Trial(NamedTuple):
    """A candidate of a run: its number, the position of its row, and those of its rows with a source as the target."""

    candidate: int
    own: int
    left_out: tuple[int, ...]

    def rows(self, by: str) -> tuple[int, ...]:
        """The rows that a criterion needs; the run on the target comes first."""
        return (self.own, *self.left_out) if by == LEAVE_ONE_OUT else (self.own,)


@dataclass(frozen=True)
class Choice:
    """The outcome of a selection.

    `row` is the position of the row that represents the run. If a candidate is selected, `row` and `selected` are its
    position. Otherwise `row` shows why none is selected, and `stands` is False if it does not, because the candidates
    are ok but have no score. The other fields count candidates that could not be selected.
    """

    row: int
    selected: int | None = None
    stands: bool = True
    unfinished: int = 0
    diverged: int = 0
    unscored: int = 0


class Trials:
    """The candidates of all runs, and their scores by each criterion."""

    def __init__(self, runs: pd.DataFrame) -> None:
        self.runs = runs if runs.index.is_monotonic_increasing else runs.sort_index(kind="stable")
        self._status = self.runs["status"].tolist()
        signs = {table.name: table.measure.sign for table in self.runs.attrs["plan"].experiments}
        self._signs = [signs[name] for name in self.runs["experiment"].astype(object)]
        self._values: list[float] = self.runs["score"].tolist()
        self._scores: dict[str, list[float]] = {}
        self._found = {} if SELECTED in runs.attrs else _trials(self.runs)

    def methods(self) -> list[tuple[Experiment, Method]]:
        """The methods whose settings are selected, in the plan's order."""
        return [
            (table, method)
            for table in self.runs.attrs["plan"].experiments
            for method in table.methods
            if method.search is not None and (table.name, method.name) in self._found
        ]

    def of(self, table: Experiment, method: Method) -> dict[tuple[str, int], list[Trial]]:
        """The candidates of a method's runs by target and seed."""
        return self._found[table.name, method.name]

    def choices(self, table: Experiment, method: Method, by: str | None = None) -> list[Choice]:
        """The choice for each run of a method, by a criterion or by the method's own."""
        criterion = by or (method.search.by if method.search else ORACLE)
        return [self.choose(trials, criterion) for trials in self.of(table, method).values()]

    def choose(self, trials: Sequence[Trial], by: str) -> Choice:
        """The choice among the candidates of one run."""
        status = {row: self._status[row] for trial in trials for row in trial.rows(by)}
        waiting = [row for row, found in status.items() if found not in _ENDED]
        lost = [trial for trial in trials if any(status[row] == "diverged" for row in trial.rows(by))]
        if waiting:
            unfinished = sum(any(status[row] not in _ENDED for row in trial.rows(by)) for trial in trials)
            known = [row for row in waiting if status[row] != "missing"]
            return Choice((known or waiting)[0], unfinished=unfinished, diverged=len(lost))
        able = [trial for trial in trials if trial not in lost]
        worth = [(trial, found) for trial in able if (found := self.worth(trial, by)) is not None]
        if worth:
            best, _ = max(worth, key=lambda pair: pair[1])
            return Choice(best.own, best.own, diverged=len(lost), unscored=len(able) - len(worth))
        broken = [row for row, found in status.items() if found == "diverged"]
        return Choice((broken or list(status))[0], stands=bool(broken), diverged=len(lost), unscored=len(able))

    def worth(self, trial: Trial, by: str) -> float | None:
        """The score of a candidate by a criterion; higher is better. None unless all of its runs are ok."""
        if any(self._status[row] != "ok" for row in trial.rows(by)):
            return None
        if by == ORACLE:
            return self.merit(trial.own)
        if by == LEAVE_ONE_OUT:
            found = [merit for row in trial.left_out if (merit := self.merit(row)) is not None]
            return tied(mean_of(found)) if found and len(found) == len(trial.left_out) else None
        if by not in self._scores:
            column = self.runs.get(f"{VALIDATOR}{by}")
            self._scores[by] = [np.nan] * len(self.runs) if column is None else column.tolist()
        score = self._scores[by][trial.own]
        return None if np.isnan(score) else score

    def merit(self, row: int) -> float | None:
        """The test score of an ok run; errors are negated.

        None if its record has no value of the metric, which validators do not need.
        """
        value = self._values[row]
        return None if np.isnan(value) else self._signs[row] * value


def _trials(runs: pd.DataFrame) -> dict[tuple[str, str], dict[tuple[str, int], list[Trial]]]:
    """The trials by experiment and method, then by target and seed, in the order of the candidates."""
    columns = ("experiment", "method", "target", "seed", "candidate", "left_out")
    tried = runs["candidate"].notna().to_numpy()
    found: dict[tuple[str, str], dict[tuple[str, int], dict[int, list[int]]]] = {}
    rows = zip(np.flatnonzero(tried).tolist(), *(runs.loc[tried, name].tolist() for name in columns), strict=True)
    for row, table, method, target, seed, candidate, left_out in rows:
        places = found.setdefault((table, method), {}).setdefault((target, seed), {}).setdefault(candidate, [])
        places.insert(len(places) if isinstance(left_out, str) else 0, row)
    return {
        place: {
            run: [Trial(candidate, rows[0], tuple(rows[1:])) for candidate, rows in sorted(of_run.items())]
            for run, of_run in of_method.items()
        }
        for place, of_method in found.items()
    }
