"""The parts of a suite that are trained one after the other: on tuning seeds, then what is chosen there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from msda_bench.results.words import counted

if TYPE_CHECKING:
    from msda_bench.running.runner import Summary
    from msda_bench.store import Store
    from msda_bench.suite.plan import Plan, PlannedCell


class Stages:
    """The selected cells of a plan; those that are trained first are all, unless settings are chosen on tuning seeds.

    Attributes:
        first: the cells on tuning seeds, or all cells.
        tunes: whether there are others.
        waiting: how many selected runs wait for tuning cells.
    """

    def __init__(self, plan: Plan, selected: tuple[PlannedCell, ...]) -> None:
        self._plan, self._selected = plan, selected
        self._tuning = {table.name: table.tuning for table in plan.experiments if table.tuning is not None}
        self.tunes = bool(self._tuning)
        self.first = tuple(filter(self._is_tuning, selected)) if self.tunes else selected
        self.waiting = self._stuck = self._planned = self._chosen = 0

    def rest(self, store: Store | None) -> tuple[PlannedCell, ...]:
        """The other cells, as far as the records of the first have chosen them."""
        if not self.tunes:
            return ()
        from msda_bench.results.frame import tuned

        choices = tuned(self._plan, store)
        unfinished, without = choices.without(unfinished=True), choices.without(unfinished=False)
        others = [cell for cell in self._selected if not self._is_tuning(cell)]
        runs = {(cell.experiment, cell.method, cell.target, cell.seed) for cell in others}
        self.waiting = sum(run[:3] in unfinished for run in runs)
        self._stuck = sum(run[:3] in without for run in runs)
        self._chosen = len(choices.numbers) - len(unfinished | without)
        wanted = {
            cell
            for cell in self._plan.cells
            if not self._is_tuning(cell)
            and (
                cell.experiment not in self._tuning
                or cell.candidate in choices.numbers[cell.experiment, cell.method, cell.target]
            )
        }
        self._planned = len({cell.key for cell in self._plan.cells if cell in wanted or self._is_tuning(cell)})
        return tuple(cell for cell in others if cell in wanted)

    def describe(self, missing: int) -> str:
        """One line on what was chosen."""
        tracks = dict.fromkeys(by for tuning in self._tuning.values() for by in tuning.tracks)
        where = f"for {self._chosen} pairs of method and target"
        left = f"{counted(missing, 'cell')} of theirs to train"
        return f"settings chosen on tuning seeds ({', '.join(tracks)}) {where}; {left}"

    def summary(self, summary: Summary) -> Summary:
        """The outcome of both parts, of all cells that are planned as far as is known."""
        return replace(summary, planned=self._planned, stuck=self._stuck)

    def gaps(self) -> Iterator[str]:
        """A line for runs that wait, and one for those without any candidate to choose."""
        if self.waiting:
            waiting = counted(self.waiting, "run")
            yield f"{waiting} must wait for tuning cells without a result; train these, then run again"
        if self._stuck:
            yield f"{counted(self._stuck, 'run')} cannot train, since no candidate has a score on the tuning seeds"

    def _is_tuning(self, cell: PlannedCell) -> bool:
        return cell.experiment in self._tuning and cell.seed in self._tuning[cell.experiment].seeds
