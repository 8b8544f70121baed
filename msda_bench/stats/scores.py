"""What each method scored in one experiment, run by run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeAlias

from msda_bench.stats.exact import scaled_integers
from msda_bench.stats.outcome import score, sign
from msda_bench.stats.selection import resolve
from msda_bench.store.record import Record
from msda_bench.suite.plan import Experiment, Plan

AVERAGE = "average"
"""How the column of means over targets is called where a target's name would stand."""

PROBLEMS = ("diverged", "failed", "timeout", "oom", "skipped", "missing")
"""What may become of a run other than ok, the gravest first."""

Column: TypeAlias = str | None
"""A target, or None for the mean over targets."""

Run: TypeAlias = tuple[str, str, int]
"""Method, target, seed."""


@dataclass(frozen=True)
class Scores:
    """Scores and statuses of one experiment's runs.

    Attributes:
        experiment: whose they are.
        values: scores of the runs that are ok, exact: accuracy in percent, or mean squared error.
        statuses: ok or one of `PROBLEMS`, for every run of the experiment.
        messages: what went wrong, where it is known.
    """

    experiment: Experiment
    values: Mapping[Run, Fraction]
    statuses: Mapping[Run, str]
    messages: Mapping[Run, str]

    @property
    def metric(self) -> str:
        """accuracy_percent or mse."""
        return "accuracy_percent" if self.experiment.task == "classification" else "mse"

    @property
    def sign(self) -> int:
        """1 where more is better, -1 where less is."""
        return sign(self.experiment.task)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The targets, then None for their mean."""
        return (*self.experiment.targets, None)

    @property
    def shown_columns(self) -> tuple[Column, ...]:
        """The same for a reader, who needs no mean over a single target."""
        return self.columns if len(self.experiment.targets) > 1 else self.columns[:-1]

    def by_seed(self, method: str, column: Column) -> dict[int, Fraction]:
        """Scores by seed; in the mean over targets only seeds whose runs are ok at every target."""
        scores = {}
        for seed in self.experiment.seeds:
            values = [self.values.get((method, target, seed)) for target in self._targets(column)]
            present = [value for value in values if value is not None]
            if present and len(present) == len(values):
                scores[seed] = _mean(present) if column is None else present[0]
        return scores

    def by_target(self, method: str, column: Column) -> dict[str, list[Fraction]]:
        """The runs behind `by_seed`, target by target, in the order of the seeds; in one column all have as many."""
        seeds = self.by_seed(method, column)
        return {target: [self.values[method, target, seed] for seed in seeds] for target in self._targets(column)}

    def counts(self, method: str, column: Column) -> Counter[str]:
        """Seeds by status; in the mean over targets the gravest status of a seed's runs."""
        targets = self._targets(column)
        return Counter(
            _gravest([self.statuses[method, target, seed] for target in targets]) for seed in self.experiment.seeds
        )

    def _targets(self, column: Column) -> tuple[str, ...]:
        return self.experiment.targets if column is None else (column,)


def collect_scores(plan: Plan, records: Mapping[str, Record]) -> tuple[Scores, ...]:
    """Takes scores and statuses from records, one `Scores` an experiment.

    Args:
        plan: what was asked for; a run of an experiment's grid that it holds no cell for counts as missing. Where
            settings are selected, a run's score is that of the selected candidate.
        records: by key; a key that is not there is a missing run.

    Returns:
        The scores, in the plan's order.

    Raises:
        StoreError: a record is ok without a possible outcome.
    """
    plan = resolve(plan, records)
    found: dict[str, dict[Run, Record]] = {experiment.name: {} for experiment in plan.experiments}
    for cell in plan.cells:
        if cell.key in records:
            found[cell.experiment][cell.method, cell.target, cell.seed] = records[cell.key]
    return tuple(_scores(experiment, found[experiment.name]) for experiment in plan.experiments)


def _scores(experiment: Experiment, found: Mapping[Run, Record]) -> Scores:
    runs = list(_runs(experiment))
    return Scores(
        experiment=experiment,
        values={run: score(found[run], experiment.task) for run in runs if run in found and found[run].status == "ok"},
        statuses={run: found[run].status if run in found else "missing" for run in runs},
        messages={run: message for run in runs if run in found and (message := found[run].message)},
    )


def _runs(experiment: Experiment) -> Iterator[Run]:
    return product([method.name for method in experiment.methods], experiment.targets, experiment.seeds)


def _mean(values: Sequence[Fraction]) -> Fraction:
    """Over one denominator, because a chain of fractions is reduced at each step."""
    numerators, scale = scaled_integers(values)
    return Fraction(sum(numerators), scale * len(values))


def _gravest(statuses: Sequence[str]) -> str:
    return next((problem for problem in PROBLEMS if problem in statuses), "ok")
