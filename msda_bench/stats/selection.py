"""Which candidate is a method's result: the one that its criterion scores best, for each target and seed.

It takes records alone, so that another criterion costs no training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeAlias

from msda_bench.stats.outcome import score, sign
from msda_bench.store.record import Record
from msda_bench.suite.plan import LEAVE_ONE_OUT, ORACLE, Experiment, Method, Plan, PlannedCell

Worth: TypeAlias = Fraction | float
"""What a criterion says of a candidate; higher is better."""


@dataclass(frozen=True)
class Trial:
    """A candidate of a run.

    Attributes:
        cell: its run at the target.
        left_out: its runs with a source as the target, if any.
    """

    cell: PlannedCell
    left_out: tuple[PlannedCell, ...] = ()

    def cells(self, by: str) -> tuple[PlannedCell, ...]:
        """The cells that a criterion needs, the run at the target first."""
        return (self.cell, *self.left_out) if by == LEAVE_ONE_OUT else (self.cell,)


@dataclass(frozen=True)
class Choice:
    """What became of a run's candidates.

    Attributes:
        cell: whose record stands for the run: the selected candidate's, or else one that tells why there is none; None
            where no candidate has a score.
        unfinished: candidates that lack a result; with any of them nothing is selected.
        diverged: candidates that diverged, which cannot be selected.
        unscored: candidates that are ok, but lack the criterion's score, and so cannot be selected.
    """

    cell: PlannedCell | None
    unfinished: int = 0
    diverged: int = 0
    unscored: int = 0


def resolve(plan: Plan, records: Mapping[str, Record], by: str | None = None) -> Plan:
    """The plan with one cell for each run: that of the selected candidate; notes tell of candidates that could not be.

    Args:
        plan: what was asked for; one without candidates stays as it is.
        records: by key.
        by: a criterion to take in place of the plan's own.

    Raises:
        StoreError: a record is ok without a possible outcome.
    """
    if all(cell.candidate is None for cell in plan.cells):
        return plan
    tables, cells = [], []
    for table in plan.experiments:
        mine = [cell for cell in plan.cells if cell.experiment == table.name]
        cells += [cell for cell in mine if cell.candidate is None]
        choices = {
            method.name: [choose(trials, records, by or method.search.by, table.task) for trials in found]
            for method in table.methods
            if method.search is not None and (found := list(trials_of(mine, method).values()))
        }
        cells += [_plain(choice.cell) for of_method in choices.values() for choice in of_method if choice.cell]
        tables.append(replace(table, notes=(*table.notes, *_notes(table, choices))))
    return Plan(plan.suite, tuple(tables), tuple(cells))


def trials_of(cells: Sequence[PlannedCell], method: Method) -> dict[tuple[str, int], list[Trial]]:
    """The candidates of each run of a method of one experiment, by target and seed.

    Args:
        cells: the experiment's.
        method: one whose settings are selected.
    """
    found: dict[tuple[str, int], dict[int, Trial]] = {}
    mine = [cell for cell in cells if cell.method == method.name and cell.candidate is not None]
    for cell in sorted(mine, key=lambda cell: cell.left_out is not None):
        trials = found.setdefault((cell.target, cell.seed), {})
        candidate = cell.candidate or 0
        if cell.left_out is None:
            trials[candidate] = Trial(cell)
        else:
            trial = trials[candidate]
            trials[candidate] = replace(trial, left_out=(*trial.left_out, cell))
    return {run: [trials[candidate] for candidate in sorted(trials)] for run, trials in found.items()}


def choose(trials: Sequence[Trial], records: Mapping[str, Record], by: str, task: str) -> Choice:
    """Selects among the candidates of a run; of equally good ones the first.

    Nothing is selected among fewer candidates than were asked for, but those that diverged, which is their result.
    """
    cells = [cell for trial in trials for cell in trial.cells(by)]
    ended = {cell.key for cell in cells if cell.key in records and records[cell.key].is_result}
    broken = {cell.key for cell in cells if cell.key in ended and records[cell.key].status == "diverged"}
    lacking = [cell for cell in cells if cell.key not in ended]
    lost = [trial for trial in trials if any(cell.key in broken for cell in trial.cells(by))]
    unfinished = sum(any(cell.key not in ended for cell in trial.cells(by)) for trial in trials)
    if lacking:
        told = [cell for cell in lacking if cell.key in records]
        return Choice((told or lacking)[0], unfinished, len(lost))
    able = [trial for trial in trials if trial not in lost]
    worth = [(trial, found) for trial in able if (found := worth_of(trial, records, by, task)) is not None]
    if worth:
        best, _ = max(worth, key=lambda pair: pair[1])
        return Choice(best.cell, 0, len(lost), len(able) - len(worth))
    why = next((cell for cell in cells if cell.key in broken), None)
    return Choice(why, 0, len(lost), len(able))


def worth_of(trial: Trial, records: Mapping[str, Record], by: str, task: str) -> Worth | None:
    """What a criterion says of a candidate all of whose runs are ok; None where it has no score."""
    record = records[trial.cell.key]
    if by == ORACLE:
        return sign(task) * score(record, task)
    if by == LEAVE_ONE_OUT:
        found = [sign(task) * score(records[cell.key], task) for cell in trial.left_out]
        return sum(found, Fraction(0)) / len(found) if found else None
    return record.validation.get(by)


def _plain(cell: PlannedCell) -> PlannedCell:
    return replace(cell, candidate=None, left_out=None)


def _notes(table: Experiment, choices: Mapping[str, Sequence[Choice]]) -> Iterator[str]:
    for attribute, what in (
        ("unfinished", "candidates without a result, whose runs are not selected among the others but lack one, too"),
        ("diverged", "candidates that diverged, and so cannot be selected"),
        ("unscored", "candidates without the score that selects, and so cannot be selected"),
    ):
        counts = {name: sum(getattr(choice, attribute) for choice in found) for name, found in choices.items()}
        if any(counts.values()):
            told = ", ".join(f"{name} {count} of {_all(table, name)}" for name, count in counts.items() if count)
            yield f"{what}: {told}"


def _all(table: Experiment, name: str) -> int:
    """The candidates of all runs of a method."""
    search = next(method.search for method in table.methods if method.name == name)
    return len(search.candidates if search else ()) * len(table.targets) * len(table.seeds)
