"""The live best: which method leads each experiment so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msda_bench.running.survey import Survey
from msda_bench.store.record import Outcome


@dataclass
class _Race:
    """One experiment.

    Attributes:
        better: 1 where more is better, -1 where less is.
        waiting: for each (target, seed) the ranked methods whose run has not ended.
        scores: scores of the runs that ended well, by (target, seed) and method.
        sums: sum and count of each method's scores over the (target, seed) that wait for none.
    """

    better: int
    waiting: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    scores: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    sums: dict[str, tuple[float, int]] = field(default_factory=dict)

    def enter(self, method: str, run: tuple[str, int]) -> None:
        self.waiting.setdefault(run, set()).add(method)

    def finish(self, method: str, run: tuple[str, int], score: float | None) -> None:
        if method not in self.waiting.get(run, ()):
            return
        self.waiting[run].discard(method)
        scores = self.scores.setdefault(run, {})
        if score is not None:
            scores[method] = score
        if not self.waiting[run]:
            for name, value in self.scores.pop(run).items():
                total, count = self.sums.get(name, (0.0, 0))
                self.sums[name] = total + value, count + 1

    def leader(self) -> tuple[str, float] | None:
        means = {method: total / count for method, (total, count) in self.sums.items()}
        best = max(means, key=lambda method: self.better * means[method], default=None)
        return None if best is None else (best, means[best])


class LiveBest:
    """Leads by mean score over the targets and seeds that every selected method has ended, so that none gains by luck.

    References such as TAR do not take part, nor do methods whose settings are selected.
    """

    def __init__(self, survey: Survey) -> None:
        tables = {experiment.name: experiment for experiment in survey.plan.experiments}
        ranked = {
            (table.name, row.name)
            for table in tables.values()
            for row in table.methods
            # Where settings are selected, no candidate counts before the others have ended.
            if not row.reference and row.search is None
        }
        self._races: dict[str, _Race] = {}
        self._entries: dict[str, list[tuple[_Race, str, tuple[str, int]]]] = {}
        for cell in survey.selected:
            if (cell.experiment, cell.method) in ranked:
                better = 1 if tables[cell.experiment].task == "classification" else -1
                race = self._races.setdefault(cell.experiment, _Race(better))
                race.enter(cell.method, (cell.target, cell.seed))
                self._entries.setdefault(cell.key, []).append((race, cell.method, (cell.target, cell.seed)))
        for key in self._entries.keys() & survey.records.keys():
            self.finish(key, survey.records[key].outcome)

    def finish(self, key: str, outcome: Outcome | None) -> None:
        """A cell's run ended; `outcome` is None unless it ended well."""
        for race, method, run in self._entries.get(key, ()):
            race.finish(method, run, _score(outcome))

    def leaders(self) -> Mapping[str, str]:
        """For each experiment with a leader its name and score: accuracy in percent, or mean squared error."""
        found = {name: (race.better, race.leader()) for name, race in self._races.items()}
        return {
            name: f"{leader[0]} {leader[1]:.2f}" if better > 0 else f"{leader[0]} {leader[1]:.3g}"
            for name, (better, leader) in found.items()
            if leader is not None
        }


def _score(outcome: Outcome | None) -> float | None:
    if outcome is None or not outcome.n_test:
        return None
    if outcome.n_correct is not None:
        return 100 * outcome.n_correct / outcome.n_test
    return None if outcome.sum_squared_error is None else outcome.sum_squared_error / outcome.n_test
