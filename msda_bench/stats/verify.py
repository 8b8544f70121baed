"""Sets our runs beside a published table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from msda_bench.errors import BenchError
from msda_bench.stats.analysis import Analysis, Entry, analyse
from msda_bench.stats.method_order import MethodOrder, method_order
from msda_bench.stats.scores import Column
from msda_bench.stats.standardised import gap
from msda_bench.stats.verification import BoldSets, CheckedCell, Verification
from msda_bench.store.record import Record
from msda_bench.suite.plan import Experiment, Plan
from msda_bench.suite.published.table import PublishedTable


def verify(plan: Plan, records: Mapping[str, Record]) -> tuple[Verification, ...]:
    """Sets each experiment that names a published table beside it.

    Args:
        plan: what was asked for.
        records: by key; runs whose key is not there are missing.

    Returns:
        One a table, in the plan's order.

    Raises:
        StoreError: a record is ok without a possible outcome.
        BenchError: a table is of another metric than the experiment.
    """
    return tuple(
        _verify(plan, experiment, experiment.published, records)
        for experiment in plan.experiments
        if experiment.published is not None
    )


def _verify(plan: Plan, experiment: Experiment, table: PublishedTable, records: Mapping[str, Record]) -> Verification:
    common = _in_common(experiment, table)
    cells = tuple(cell for cell in plan.cells if cell.experiment == experiment.name)
    (analysis,) = analyse(Plan(plan.suite, (common,), cells), records)
    if analysis.scores.metric != table.metric:
        raise BenchError(
            f"{experiment.name}: table {table.name} is of {table.metric}, the runs are of {analysis.scores.metric}"
        )
    methods, published = [method.name for method in experiment.methods], [row.method for row in table.rows]
    absent_targets = _without(table.targets, experiment.targets)
    return Verification(
        table=table,
        analysis=analysis,
        cells=tuple(_cells(table, analysis)),
        bold=tuple(_bold(table, analysis)),
        order=method_order(table, analysis.scores) if not absent_targets else MethodOrder((), (), 0, ()),
        absent_methods=_without(published, methods),
        absent_targets=absent_targets,
        extra_methods=_without(methods, published),
        extra_targets=_without(experiment.targets, table.targets),
    )


def _in_common(experiment: Experiment, table: PublishedTable) -> Experiment:
    """What both have, in the table's order; which methods are references is the table's word."""
    methods = {method.name: method for method in experiment.methods}
    return replace(
        experiment,
        targets=tuple(target for target in table.targets if target in experiment.targets),
        methods=tuple(
            replace(methods[row.method], reference=row.reference) for row in table.rows if row.method in methods
        ),
    )


def _without(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in others)


def _cells(table: PublishedTable, analysis: Analysis) -> Iterator[CheckedCell]:
    for index in range(len(table.targets) + 1):
        for row in table.rows:
            published = row.cells[index]
            entry = _entry(table, analysis, row.method, published.column)
            found = gap(entry.summary, published.mean, published.standard_error, table.runs) if entry else None
            yield CheckedCell(row.method, row.reference, published, entry, found)


def _entry(table: PublishedTable, analysis: Analysis, method: str, column: Column) -> Entry | None:
    """A mean over other targets than theirs is no match for theirs."""
    if column is None and analysis.scores.experiment.targets != table.targets:
        return None
    return analysis.entries.get((method, column))


def _bold(table: PublishedTable, analysis: Analysis) -> Iterator[BoldSets]:
    for index, column in enumerate((*table.targets, None)):
        published = tuple(row.method for row in table.rows if row.cells[index].bold)
        if published:
            ranked = [row.method for row in table.rows if not row.reference]
            marks = {method: _mark(_entry(table, analysis, method, column)) for method in ranked}
            told = None not in marks.values()
            yield BoldSets(column, published, tuple(name for name in ranked if marks[name]) if told else None)


def _mark(entry: Entry | None) -> bool | None:
    return entry.bold_paper if entry is not None else None
