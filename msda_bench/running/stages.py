"""The two stages of a suite that chooses settings on tuning seeds: the tuning runs, then the others."""

from __future__ import annotations

from collections.abc import Iterator

from msda_bench.results.frame import tuned
from msda_bench.results.words import counted
from msda_bench.store import Store
from msda_bench.suite.plan import Plan, PlannedRun


class TuningStages:
    """The selected runs of a plan in two stages; without tuning seeds all runs are in the first.

    Attributes:
        first: the runs on tuning seeds, or all runs.
        tunes: whether there is a second stage.
        waiting: how many selected runs wait for tuning runs.
        stuck: how many have no candidate to choose.
        planned: all runs of the plan, as far as is known.
    """

    def __init__(self, plan: Plan, selected: tuple[PlannedRun, ...]) -> None:
        self._plan = plan
        self._selected = selected
        self._tuning = {table.name: table.tuning for table in plan.experiments if table.tuning is not None}
        self.tunes = bool(self._tuning)
        self.first = selected
        if self.tunes:
            self.first = tuple(run for run in selected if self._is_tuning(run))
        self.waiting = 0
        self.stuck = 0
        self.planned = 0
        self._chosen = 0

    def rest(self, store: Store | None) -> tuple[PlannedRun, ...]:
        """The runs of the second stage, as far as the records of the first have chosen them."""
        if not self.tunes:
            return ()
        choices = tuned(self._plan, store)
        unfinished = choices.without(unfinished=True)
        without = choices.without(unfinished=False)
        others = [run for run in self._selected if not self._is_tuning(run)]
        different = {(run.experiment, run.method, run.target, run.seed) for run in others}
        self.waiting = sum(run[:3] in unfinished for run in different)
        self.stuck = sum(run[:3] in without for run in different)
        self._chosen = len(choices.numbers) - len(unfinished | without)

        def is_chosen(run: PlannedRun) -> bool:
            if run.experiment not in self._tuning:
                return True
            return run.candidate in choices.numbers[run.experiment, run.method, run.target]

        self.planned = len({run.key for run in self._plan.cells if self._is_tuning(run) or is_chosen(run)})
        return tuple(run for run in others if is_chosen(run))

    def describe(self, missing: int) -> str:
        """One line on the settings that were chosen."""
        criteria = dict.fromkeys(by for tuning in self._tuning.values() for by in tuning.tracks)
        by = ", ".join(criteria)
        chosen = f"settings chosen on tuning seeds ({by}) for {self._chosen} pairs of method and target"
        return f"{chosen}; {counted(missing, 'run')} of theirs to train"

    def gaps(self) -> Iterator[str]:
        """A line for runs that wait, and one for those without any candidate to choose."""
        if self.waiting:
            waiting = counted(self.waiting, "run")
            yield f"{waiting} must wait for tuning runs without a result; train these, then run again"
        if self.stuck:
            yield f"{counted(self.stuck, 'run')} cannot train, since no candidate has a score on the tuning seeds"

    def _is_tuning(self, run: PlannedRun) -> bool:
        tuning = self._tuning.get(run.experiment)
        return tuning is not None and run.seed in tuning.seeds
