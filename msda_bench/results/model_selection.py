"""Selects settings: the candidate with the best mean standardised score over the runs that vote.

Each run selects for itself. Where a suite has tuning seeds, all runs at these seeds select for a target together. Only
recorded runs are used, so another criterion needs no training.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from msda_bench.errors import BenchError
from msda_bench.results.estimates import mean_of, tied
from msda_bench.results.load import VALIDATOR
from msda_bench.results.runs import ResultsFrame, ok_runs, results_of, with_results
from msda_bench.results.small import averaged_targets, small_tests
from msda_bench.suite.plan import FIRST, ORACLE, TARGET_ACCURACY, Experiment, Method, Search, Tuning, parts_of

_OF_PLAN = ["suite", "experiment", "dataset", "task", "target", "method", "reference", "seed", "status"]
_UNFINISHED = ("failed", "timeout", "oom", "skipped", "missing")
_SHOWN = {status: place for place, status in enumerate((*_UNFINISHED, "diverged", "ok"))}
"""Which candidate stands for a run without a choice: the first candidate with the first of these statuses."""
Run: TypeAlias = dict[int, int]
"""The positions of the rows of a run's candidates, by number."""
Runs: TypeAlias = dict[tuple[str, int], Run]
"""Runs by target and seed."""
_Place: TypeAlias = tuple[str, ...]
"""An experiment, a method and a target."""


class Choice(NamedTuple):
    """The candidate that a criterion selects for a target, at one seed or over the tuning seeds (`seed` is None).

    `number` is that of the chosen candidate, None if none can be chosen: yet, as long as candidates are `unfinished`.
    The other fields count candidates that cannot be chosen.
    """

    by: str
    target: str
    seed: int | None
    number: int | None
    unfinished: int = 0
    diverged: int = 0
    failed: int = 0
    unscored: int = 0


@dataclass(frozen=True)
class Choices:
    """The choice of each selection criterion, by experiment, method, target and criterion."""

    of: Mapping[tuple[str, str, str, str], Choice] = field(default_factory=dict)

    @cached_property
    def numbers(self) -> Mapping[_Place, set[int]]:
        """The candidates that any track chooses, by experiment, method and target."""
        numbers: dict[_Place, set[int]] = {}
        for (*place, _), choice in self.of.items():
            chosen = numbers.setdefault(tuple(place), set())
            if choice.number is not None:
                chosen.add(choice.number)
        return numbers

    def without(self, *, unfinished: bool) -> set[_Place]:
        """Where a track has no choice yet, since candidates are unfinished, or none at all."""
        places = set()
        for (*place, _), choice in self.of.items():
            if choice.number is None and bool(choice.unfinished) == unfinished:
                places.add(tuple(place))
        return places


class Candidates:
    """The candidates of all runs of a frame, and their scores by each criterion."""

    def __init__(self, runs: pd.DataFrame) -> None:
        self.runs = runs if runs.index.is_monotonic_increasing else runs.sort_index(kind="stable")
        self.status: list[str] = self.runs["status"].tolist()
        self._scores: dict[str, list[float]] = {}
        self._tried: dict[tuple[str, str], Runs] = {}
        self.results = results_of(runs)
        if self.results.selection is not None:
            return
        places = self.runs[["candidate", "experiment", "method", "target", "seed"]].assign(row=range(len(self.runs)))
        tried = places[places["candidate"].notna()].sort_values("candidate", kind="stable")
        for number, table, method, target, seed, row in tried.itertuples(index=False):
            of_method = self._tried.setdefault((table, method), {})
            of_run = of_method.setdefault((target, seed), {})
            of_run[number] = row

    def methods(self, table: Experiment) -> list[Method]:
        """The methods of an experiment whose settings are selected, in the plan's order."""
        return [method for method in table.methods if method.search and (table.name, method.name) in self._tried]

    def of(self, table: Experiment, method: Method, *, votes: bool) -> Runs:
        """The candidates of a method's runs that vote or, where these are on tuning seeds, of those that do not."""
        tried = self._tried.get((table.name, method.name), {})
        if table.tuning is None:
            return tried
        tuning_seeds = set(table.tuning.seeds)
        return {at: run for at, run in tried.items() if (at[1] in tuning_seeds) == votes}

    def choices(self, table: Experiment, method: Method, by: str | None = None) -> Iterator[Choice]:
        """What a criterion chooses for each run or, by tuning seeds, for each target; by default the suite's own."""
        if method.search is None:
            return
        if table.tuning is None:
            yield from self._choices_of_runs(table, method, method.search.by, by)
        else:
            yield from self._choices_on_tuning_seeds(table, table.tuning, method, method.search, by)

    def _choices_of_runs(self, table: Experiment, method: Method, own: str, by: str | None) -> Iterator[Choice]:
        # What trains with the target's labels is not reselected by what the others cannot see, or are not to see.
        sees_labels = method.reference and own in {ORACLE, TARGET_ACCURACY}
        criterion = own if by is None or sees_labels else by
        for (target, seed), run in self.of(table, method, votes=True).items():
            yield self._choice(criterion, target, seed, [run], [*run], frozenset(_UNFINISHED))

    def _choices_on_tuning_seeds(
        self, table: Experiment, tuning: Tuning, method: Method, search: Search, by: str | None
    ) -> Iterator[Choice]:
        runs = self.of(table, method, votes=True)
        track = by or tuning.tracks[0]
        criterion = search.by if method.name in tuning.oracles else track
        known = self.results.choices or Choices()
        for target in table.targets:
            choice = known.of.get((table.name, method.name, target, track))
            if track == FIRST:
                choice = Choice(FIRST, target, None, 0)
            if choice is None:
                voters = [runs.get((target, seed), {}) for seed in tuning.seeds]
                numbers = range(len(search.candidates))
                choice = self._choice(criterion, target, None, voters, numbers, frozenset({"missing"}))
            yield choice

    def _choice(
        self, by: str, target: str, seed: int | None, voters: Sequence[Run], tried: Sequence[int], waits: frozenset[str]
    ) -> Choice:
        """The choice of the runs that vote; none as long as a candidate has a status that `waits` in one of them."""
        states = Counter(self._state(number, voters, waits) for number in tried)
        choice = Choice(by, target, seed, None, states["unfinished"], states["diverged"], states["failed"])
        if choice.unfinished:
            return choice
        scores = self.scores(voters, by)
        best = max(scores, key=scores.__getitem__, default=None)
        return choice._replace(number=best, unscored=states["ok"] - len(scores))

    def _state(self, number: int, voters: Sequence[Run], waits: frozenset[str]) -> str:
        """The state of a candidate over the runs that vote: `ok`, `unfinished`, `diverged` or `failed`."""
        statuses = {self.status[run[number]] if number in run else "missing" for run in voters}
        if statuses == {"ok"}:
            return "ok"
        if statuses & waits:
            return "unfinished"
        return "diverged" if "diverged" in statuses else "failed"

    def scores(self, voters: Sequence[Run], by: str) -> dict[int, float]:
        """The mean score of each candidate over the runs that vote; a sum `a+b` adds the z-scores of two means.

        Candidates that are not ok in one of them, or have no score, are left out. A criterion that tells no candidate
        from another adds 0 to a sum.
        """
        columns = [self._column(part) for part in parts_of(by)]
        means: dict[int, list[float]] = {}
        for number in voters[0]:
            if not all(self._is_ok(run, number) for run in voters):
                continue
            rows = [run[number] for run in voters]
            of_parts = [_mean([column[row] for row in rows]) for column in columns]
            if not any(map(math.isnan, of_parts)):
                means[number] = of_parts
        if len(columns) == 1 or not means:
            return {number: of_parts[0] for number, of_parts in means.items()}
        sizes = np.array([*means.values()])
        spreads = sizes.std(axis=0)
        spreads[np.ptp(sizes, axis=0) == 0] = np.inf
        standardised = (sizes - sizes.mean(axis=0)) / spreads
        # Rounded, so that sums which are equal as fractions are equal.
        sums = standardised.sum(axis=1).round(9)
        return dict(zip(means, sums.tolist(), strict=True))

    def _is_ok(self, run: Run, number: int) -> bool:
        return number in run and self.status[run[number]] == "ok"

    def _column(self, by: str) -> list[float]:
        """Each row's score by a single criterion, higher is better; NaN where there is none."""
        if by not in self._scores:
            runs = self.runs
            if by == ORACLE:
                signs = {table.name: table.measure.sign for table in self.results.plan.experiments}
                scores = runs["score"] * runs["experiment"].astype(object).map(signs)
            elif by == FIRST:
                scores = -runs["candidate"].astype(float)
            else:
                scores = runs.get(f"{VALIDATOR}{by}", pd.Series(np.nan, runs.index))
            self._scores[by] = scores.tolist()
        return self._scores[by]

    def merit(self, row: int) -> float:
        """A run's score on the target, negated if less is better; NaN without one, which validators do not need."""
        return self._column(ORACLE)[row]

    def shown(self, table: Experiment, method: Method, by: str | None = None) -> dict[int, bool]:
        """The row that represents each run by a criterion's choice, and whether the run counts as missing."""
        chosen = {(choice.target, choice.seed): choice.number for choice in self.choices(table, method, by)}
        rows = {}
        for (target, seed), run in self.of(table, method, votes=False).items():
            number = chosen[target, None if table.tuning else seed]
            if number in run:
                rows[run[number]] = False
                continue
            first = min(run.values(), key=lambda row: _SHOWN[self.status[row]])
            rows[first] = table.tuning is not None or self.status[first] == "ok"
        return rows

    def select(self, by: str | None = None) -> pd.DataFrame:
        """The rows that `select` keeps."""
        is_missing = dict.fromkeys(np.flatnonzero(self.runs["candidate"].isna()).tolist(), False)
        for table in self.results.plan.experiments:
            shown: dict[int, bool] = {}
            for method in self.methods(table):
                shown |= self.shown(table, method, by)
            if by is not None and table.tuning is not None and by not in table.tuning.tracks:
                self._refuse_untrained(table, by, shown)
            is_missing |= shown
        rows = sorted(is_missing)
        chosen = self.runs.iloc[rows].copy()
        missing = np.array([is_missing[row] for row in rows])
        if missing.any():
            recorded = chosen.columns.difference(_OF_PLAN)
            chosen[recorded] = chosen[recorded].mask(np.repeat(missing[:, np.newaxis], len(recorded), axis=1))
        chosen["status"] = chosen["status"].astype(object).mask(missing, "missing").astype("category")
        return with_results(chosen, replace(self.results, selection=Selection(self, by)))

    def _refuse_untrained(self, table: Experiment, by: str, shown: Mapping[int, bool]) -> None:
        """Refuses a criterion that chose what was not trained; `shown` are the rows of its choices."""
        absent = sum(lost or self.status[row] == "missing" for row, lost in shown.items())
        if absent:
            what = f"what {by} chooses was not trained for {absent} of {len(shown)} runs"
            raise BenchError(f"{table.name}: {what}; add it to select.tracks and run the suite again")

    @cached_property
    def gaps(self) -> Mapping[str, Mapping[int, float]]:
        """The headroom, by experiment and seed, with the settings that the oracle chose, where it is a track.

        It is what the reference gains over the baseline, a mean over targets.
        """
        gaps = {}
        for table in self.results.plan.experiments:
            if table.headroom is None or table.tuning is None or ORACLE not in table.tuning.tracks:
                continue
            gap = self._gap(table, table.headroom, table.baseline)
            if gap is not None:
                gaps[table.name] = gap
        return gaps

    def _gap(self, table: Experiment, reference: str, baseline: str | None) -> dict[int, float] | None:
        """What the reference gains over the baseline by seed; None if either has no run."""
        rows: list[int] = []
        for method in table.methods:
            if method.name in {reference, baseline}:
                rows += [row for row, lost in self.shown(table, method, ORACLE).items() if not lost]
        runs = self.runs[["method", "target", "seed", "status", "score", "n_test"]].iloc[rows]
        counted = averaged_targets(table.targets, small_tests(runs))
        runs = ok_runs(runs[runs["target"].isin(counted)]).astype({"method": object})
        scores = runs.pivot(index="seed", columns=["method", "target"], values="score")
        if not {reference, baseline} <= {*scores.columns.get_level_values("method")}:
            return None
        gains = pd.DataFrame(scores[reference]) - pd.DataFrame(scores[baseline])
        gap = gains.dropna().mean(axis=1)
        sizes = (table.measure.sign * gap).tolist()
        return dict(zip(gap.index.tolist(), sizes, strict=True))


@dataclass(frozen=True)
class Selection:
    """Where selected rows come from, and the criterion, if it is not the plan's."""

    candidates: Candidates
    track: str | None


def _mean(votes: Sequence[float]) -> float:
    """The mean of the votes; a single one counts to its last digit."""
    return votes[0] if len(votes) == 1 else tied(mean_of(votes))


def select(runs: pd.DataFrame, by: str | None = None) -> pd.DataFrame:
    """Keeps one row per run: that of its selected candidate, or of the first among equally good ones.

    A run with an unfinished candidate takes its status and message. Diverged candidates count as finished, but cannot
    be selected: a run whose candidates all diverged has diverged. A run whose candidates have no score for the
    selection is missing.

    Where settings are chosen once, on tuning seeds, the rows are those of the suite's other seeds, all with the
    candidate that a track chose; they are missing as long as a candidate has no run at a tuning seed.

    Args:
        runs: a frame from `load_results`. Runs without candidates and frames from `select` are returned unchanged.
        by: a criterion instead of the plan's: a validator or `oracle`; a track, `first` among them, where settings are
            chosen on tuning seeds.

    Raises:
        BenchError: a criterion chose on tuning seeds what was not trained on the others.
    """
    if results_of(runs).selection is not None or runs["candidate"].isna().all():
        return runs
    return Candidates(runs).select(by)


def candidates_of(runs: pd.DataFrame, selected: pd.DataFrame) -> Candidates:
    """The candidates of a frame of runs, from the frame that `select` made of it."""
    selection = results_of(selected).selection
    if selection is None or results_of(runs).selection is not None:
        return Candidates(runs)
    return selection.candidates


def choices_of(runs: pd.DataFrame) -> Choices:
    """The choices of the selection criteria of suites with tuning seeds."""
    candidates = Candidates(runs)
    choices: dict[tuple[str, str, str, str], Choice] = {}
    for table in results_of(runs).plan.experiments:
        if table.tuning is None:
            continue
        for track, method in product(table.tuning.tracks, table.methods):
            for choice in candidates.choices(table, method, track):
                choices[table.name, method.name, choice.target, track] = choice
    return Choices(choices)


def chosen_on_tuning_seeds(runs: pd.DataFrame, choices: Choices | None = None) -> ResultsFrame:
    """The runs with the choices of the tracks in their `results`, without missing runs that no track chose."""
    results = results_of(runs)
    tables = {table.name: table.tuning for table in results.plan.experiments if table.tuning is not None}
    if not tables:
        return with_results(runs, results)
    choices = choices or choices_of(runs)
    is_kept = np.array(runs["status"] != "missing", bool)
    missing = runs.loc[~is_kept, ["experiment", "method", "target", "seed", "candidate"]]
    is_wanted = []
    for name, method, target, seed, candidate in missing.itertuples(index=False):
        tuning = tables.get(name)
        chosen = choices.numbers.get((name, method, target)) or {0}
        is_wanted.append(tuning is None or seed in tuning.seeds or candidate in chosen)
    is_kept[~is_kept] = is_wanted
    return with_results(runs[is_kept].reset_index(drop=True), replace(results, choices=choices))
