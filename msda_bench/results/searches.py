"""The candidates of runs, what criteria score them, and what each criterion chooses among them.

A criterion is a function of the candidates of one run, `Criterion`; `CRITERIA` names them. The scores of validators are
in the records.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np
import pandas as pd

from msda_bench.results.estimates import mean_of, tied
from msda_bench.results.recorded import VALIDATOR
from msda_bench.suite.plan import FIRST, LEAVE_ONE_OUT, ORACLE, TARGET_ACCURACY, Experiment, Method, parts_of

SELECTED = "selected"
"""The key in `attrs` that marks a frame from `select`."""
CHOICES = "choices"
"""The key in `attrs` of what the tracks choose on tuning seeds."""
_ENDED = {"ok", "diverged"}
_Place: TypeAlias = tuple[str, str, str]


class Candidate(NamedTuple):
    """A candidate of a run: its number, the position of its row, and those of its rows with a source as the target."""

    number: int
    row: int
    left_out: tuple[int, ...]

    def rows(self, by: str) -> tuple[int, ...]:
        """The rows that a criterion needs; the run on the target comes first."""
        return (self.row, *self.left_out) if LEAVE_ONE_OUT in parts_of(by) else (self.row,)


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


@dataclass(frozen=True)
class Once:
    """The choice among a method's candidates for a target, on the tuning seeds.

    `number` is that of the chosen candidate, None if none can be chosen: yet, as long as candidates are `unfinished`,
    which have no run at a tuning seed. The other fields count candidates that cannot be chosen.
    """

    by: str
    number: int | None
    unfinished: int = 0
    diverged: int = 0
    failed: int = 0
    unscored: int = 0


@dataclass(frozen=True)
class Choices:
    """What each track chooses, by experiment, method and target."""

    of: Mapping[tuple[str, str, str, str], Once] = field(default_factory=dict)

    def __deepcopy__(self, memo: dict[int, Any]) -> Choices:
        """Itself, which never changes; see `Plan`."""
        return self

    @cached_property
    def numbers(self) -> Mapping[_Place, frozenset[int]]:
        """The candidates that any track chooses, by experiment, method and target."""
        numbers: dict[_Place, set[int]] = {}
        for (*place, _), once in self.of.items():
            numbers.setdefault((place[0], place[1], place[2]), set()).update(
                () if once.number is None else [once.number]
            )
        return {place: frozenset(of_place) for place, of_place in numbers.items()}

    def without(self, *, unfinished: bool) -> frozenset[_Place]:
        """Where a track has no choice yet, since candidates are unfinished, or none at all."""
        places = ((place[:3], once) for place, once in self.of.items() if once.number is None)
        return frozenset(place for place, once in places if bool(once.unfinished) == unfinished)


class Searches:
    """The candidates of all runs, and their scores by each criterion.

    Where settings are chosen on tuning seeds, the candidates are those of these seeds.
    """

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

    def is_absent(self, row: int) -> bool:
        """Whether there is no record of a run."""
        return bool(self._status[row] == "missing")

    def track(
        self, table: Experiment, track: str, methods: Sequence[Method] | None = None
    ) -> Iterator[tuple[Method, str, Once]]:
        """What a track chooses on an experiment's tuning seeds, for each target and each of `methods`, or all."""
        known = self.runs.attrs.get(CHOICES, Choices()).of
        for method in (table.methods if methods is None else methods) if table.tuning is not None else ():
            for target in table.targets if method.search is not None else ():
                once = known.get((table.name, method.name, target, track))
                yield method, target, once or self.once(table, method, target, track)

    def once(self, table: Experiment, method: Method, target: str, track: str) -> Once:
        """The candidate with the best mean over the tuning seeds, of equally good ones the first."""
        tuning, search = table.tuning, method.search
        if tuning is None or search is None or track == FIRST:
            return Once(track, 0)
        by = search.by if method.name in tuning.oracles else track
        of_method = self._candidates.get((table.name, method.name), {})
        runs = [{tried.number: tried for tried in of_method.get((target, seed), ())} for seed in tuning.seeds]
        left: dict[str, list[int]] = {"unfinished": [], "diverged": [], "failed": [], "ok": []}
        for number in range(len(search.candidates)):
            rows = [row for run in runs if number in run for row in run[number].rows(by)]
            statuses = {self._status[row] for row in rows} | (
                set() if all(number in run for run in runs) else {"missing"}
            )
            what = "unfinished" if "missing" in statuses else "diverged" if "diverged" in statuses else "failed"
            left["ok" if statuses == {"ok"} else what].append(number)
        counts = {what: len(numbers) for what, numbers in left.items() if what != "ok"}
        if left["unfinished"]:
            return Once(by, None, **counts)
        tried = [[run[number] for number in left["ok"]] for run in runs]
        scores = standardised([_means(self.scores(run, part) for run in tried) for part in parts_of(by)])
        ranked = {number: score for number, score in zip(left["ok"], scores, strict=True) if score is not None}
        best = max(ranked, key=ranked.__getitem__) if ranked else None
        return Once(by, best, **counts, unscored=len(scores) - len(ranked))

    def choices(self, table: Experiment, method: Method, by: str | None = None) -> list[Choice]:
        """The choice for each run of a method, by a criterion or by the method's own."""
        own = method.search.by if method.search else ORACLE
        # What trains with the target's labels is not reselected by what the others cannot see, or are not to see.
        criterion = own if by is None or (method.reference and own in {ORACLE, TARGET_ACCURACY}) else by
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
        given = zip(candidates, self.scores(candidates, by), strict=True)
        scores = {candidate: score for candidate, score in given if score is not None}
        n_unscored = len(candidates) - n_diverged - len(scores)
        if scores:
            best = max(scores, key=scores.__getitem__)
            return Choice(best.row, is_selected=True, diverged=n_diverged, unscored=n_unscored)
        diverged = [row for row, status in every.items() if status == "diverged"]
        row = [*diverged, *every][0]
        return Choice(row, is_missing=not diverged, diverged=n_diverged, unscored=n_unscored)

    def scores(self, candidates: Sequence[Candidate], by: str) -> list[float | None]:
        """The scores of the candidates of one run by a criterion; None for those that are not ok, or have no score."""
        parts = parts_of(by)
        if len(parts) > 1:
            return standardised([self.scores(candidates, part) for part in parts])
        tried = [candidate for candidate in candidates if all(self._status[row] == "ok" for row in candidate.rows(by))]
        given = CRITERIA[by](self, tried) if by in CRITERIA else [self._validated(by, each.row) for each in tried]
        by_number = {candidate.number: score for candidate, score in zip(tried, given, strict=True)}
        return [by_number.get(candidate.number) for candidate in candidates]

    def _validated(self, by: str, row: int) -> float | None:
        if by not in self._scores:
            column = self.runs.get(f"{VALIDATOR}{by}")
            self._scores[by] = [np.nan] * len(self.runs) if column is None else column.tolist()
        score = self._scores[by][row]
        return None if math.isnan(score) else score

    def merit(self, row: int) -> float | None:
        """The test score of an ok run; errors are negated.

        None if its record has no value of the metric, which validators do not need.
        """
        merit = self._merits[row]
        return None if math.isnan(merit) else merit


Criterion: TypeAlias = Callable[[Searches, Sequence[Candidate]], list[float | None]]
"""Scores the candidates of one run of a method, which are ok; higher is better, None where there is no score."""


def _by_oracle(searches: Searches, candidates: Sequence[Candidate]) -> list[float | None]:
    return [searches.merit(candidate.row) for candidate in candidates]


def _by_left_out(searches: Searches, candidates: Sequence[Candidate]) -> list[float | None]:
    merits = [[searches.merit(row) for row in candidate.left_out] for candidate in candidates]
    return [None if None in of_one or not of_one else tied(mean_of(filter(_is_number, of_one))) for of_one in merits]


def _by_number(_: Searches, candidates: Sequence[Candidate]) -> list[float | None]:
    return [-float(candidate.number) for candidate in candidates]


CRITERIA: Mapping[str, Criterion] = MappingProxyType(
    {ORACLE: _by_oracle, LEAVE_ONE_OUT: _by_left_out, FIRST: _by_number}
)
"""All criteria but validators and sums; their names must be known to `msda_bench.suite.search`, too."""


def standardised(scores: Sequence[Sequence[float | None]]) -> list[float | None]:
    """The scores of candidates by one criterion, or the sums of their z-scores by several, each over all candidates.

    A candidate without a score by one of them has none. A criterion that tells no candidate from another adds 0.
    """
    if len(scores) == 1:
        return list(scores[0])
    places = [place for place, of_one in enumerate(zip(*scores, strict=True)) if None not in of_one]
    sums: list[float | None] = [None] * len(scores[0])
    columns = [[score for place in places if (score := column[place]) is not None] for column in scores]
    spreads = [(mean_of(column), statistics.pstdev(column) if len(set(column)) > 1 else math.inf) for column in columns]
    for index, place in enumerate(places):
        z = ((column[index] - mean) / spread for column, (mean, spread) in zip(columns, spreads, strict=True))
        sums[place] = round(math.fsum(z), 9)  # so that sums which are equal as fractions are equal
    return sums


def _means(runs: Iterable[Sequence[float | None]]) -> list[float | None]:
    """The mean over runs of each candidate's score; None if one has none."""
    of_each = zip(*runs, strict=True)
    return [None if None in scores else tied(mean_of(filter(_is_number, scores))) for scores in of_each]


def _is_number(score: float | None) -> TypeGuard[float]:
    return score is not None


def _candidates(runs: pd.DataFrame) -> dict[tuple[str, str], dict[tuple[str, int], list[Candidate]]]:
    """The candidates by experiment and method, then by target and seed, in the order of their numbers."""
    columns = ("experiment", "method", "target", "seed", "candidate", "left_out")
    tried = runs["candidate"].notna().to_numpy()
    for experiment in runs.attrs["plan"].experiments:
        if experiment.tuning is not None:
            mine = (runs["experiment"].astype(object) == experiment.name).to_numpy()
            tried = tried & (~mine | runs["seed"].isin(experiment.tuning.seeds).to_numpy())
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
