"""The best method of each experiment so far, by equal sets of targets and seeds."""

from __future__ import annotations

from collections import Counter, defaultdict

from msda_bench.running.survey import Survey
from msda_bench.store.record import Outcome
from msda_bench.suite.plan import PlannedCell

_FEWEST = 2


class BestSoFar:
    """Mean scores over the pairs of target and seed that every selected method completed.

    A pair counts only if no method failed on it, so that all means are over the same pairs. References such as TAR are
    not included, nor methods whose settings are selected: their candidates count only when all have ended. Experiments
    with another metric than the default are left to the tables.
    """

    def __init__(self, survey: Survey) -> None:
        self._lower_is_better = {one.name for one in survey.plan.experiments if one.task != "classification"}
        self._methods: defaultdict[str, set[str]] = defaultdict(set)
        self._cells: defaultdict[str, list[PlannedCell]] = defaultdict(list)
        self._scores: defaultdict[tuple[str, str, int], dict[str, float]] = defaultdict(dict)
        self._pairs: Counter[str] = Counter()
        self._totals: defaultdict[tuple[str, str], float] = defaultdict(float)
        ranked = {
            (experiment.name, method.name)
            for experiment in survey.plan.experiments
            for method in experiment.methods
            if not method.reference and method.search is None and experiment.metric is None
        }
        for cell in survey.selected:
            if (cell.experiment, cell.method) in ranked:
                self._methods[cell.experiment].add(cell.method)
                self._cells[cell.key].append(cell)
        for key in self._cells.keys() & survey.ended.keys():
            self.finish(key, survey.ended[key].outcome)

    def finish(self, key: str, outcome: Outcome | None) -> None:
        """Records that a cell ended; `outcome` is None unless it ended well."""
        score = _score(outcome)
        if score is None:
            return
        for cell in self._cells.pop(key, ()):
            pair = cell.experiment, cell.target, cell.seed
            self._scores[pair][cell.method] = score
            if self._scores[pair].keys() == self._methods[cell.experiment]:
                self._pairs[cell.experiment] += 1
                for method, value in self._scores.pop(pair).items():
                    self._totals[cell.experiment, method] += value

    def describe(self) -> str:
        """One line with the best method of each experiment and its score: accuracy in percent, or mean squared error.

        Empty while no pair is complete, and for an experiment with a single selected method.
        """
        found = []
        for experiment, count in self._pairs.items():
            methods = self._methods[experiment]
            if len(methods) >= _FEWEST:
                lower = experiment in self._lower_is_better
                best = (min if lower else max)(sorted(methods), key=lambda name: self._totals[experiment, name])
                score = self._totals[experiment, best] / count
                found.append(f"{experiment}: {best} {f'{score:.3g}' if lower else f'{score:.2f}'}")
        return f"best so far: {'; '.join(found)}" if found else ""


def _score(outcome: Outcome | None) -> float | None:
    if outcome is None or not outcome.n_test:
        return None
    if outcome.n_correct is not None:
        return 100 * outcome.n_correct / outcome.n_test
    return None if outcome.sum_squared_error is None else outcome.sum_squared_error / outcome.n_test
