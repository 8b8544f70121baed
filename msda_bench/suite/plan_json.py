"""A plan as JSON, for plan.json in the result folder; validated, since anyone may have written it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from msda_bench.errors import StoreError
from msda_bench.suite.cell import refuse_overflow
from msda_bench.suite.mistakes import dotted, faults, shown
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell

PLAN_SCHEMA = 1
"""Version of the layout."""
PLAN_LIMIT = 1 << 29
"""The maximum size of a plan.json in bytes, enough for two million cells."""
MOST_RUNS = 5_000_000
"""The maximum number of runs in a plan, each a row of every frame of results."""
_FEW = 10_000
_MOST_A_CELL = 10
"""The maximum number of runs for each cell of a plan, unless they are few; a plan from a suite has one."""


class NewerPlanError(StoreError):
    """A plan in a layout of a newer msda-bench."""


@dataclass(frozen=True)
class _Head:
    schema: Any = None


@dataclass(frozen=True)
class _File(Plan):
    schema: int


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain JSON values, without those at their default, which must therefore never change."""
    return {"schema": PLAN_SCHEMA, **_adapter(Plan).dump_python(plan, mode="json", exclude_defaults=True)}


def parse_plan(data: bytes) -> Plan:
    """The plan in the bytes of a plan.json; a StoreError if it is invalid or too large."""
    try:
        refuse_overflow(data)
        _check_schema(_adapter(_Head).validate_json(data).schema)
        # From JSON, because strict Python mode would refuse the list that JSON holds for a tuple.
        file = _adapter(_File).validate_json(data, strict=True)
    except ValidationError as error:
        first = next(iter(faults(error, lambda _: ("key", []))))
        raise _no_plan(": ".join(filter(None, (dotted(first.loc), first.what)))) from None
    except (ValueError, RecursionError) as error:
        raise _no_plan(str(error)) from None
    for wrong in _wrong(file):
        raise _no_plan(wrong)
    return Plan(file.suite, file.experiments, file.cells)


def _check_schema(schema: object) -> None:
    if isinstance(schema, int) and schema > PLAN_SCHEMA:
        raise NewerPlanError(
            f"plan.json: is of layout {shown(schema)}, but this msda-bench reads {PLAN_SCHEMA}; install a newer one"
        )
    if type(schema) is not int or schema != PLAN_SCHEMA:
        raise _no_plan(f"schema must be {PLAN_SCHEMA}, not {shown(schema)}")


def _no_plan(why: str) -> StoreError:
    return StoreError(f"plan.json: not a plan: {why}")


@functools.cache  # building one takes longer than reading most plans
def _adapter(of: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(of)


def _wrong(plan: Plan) -> Iterator[str]:
    if len({experiment.name for experiment in plan.experiments}) != len(plan.experiments):
        yield "two experiments have the same name"
    for table in plan.experiments:
        yield from _inconsistent(table)
    runs = sum(len(table.methods) * len(table.targets) * len(table.seeds) for table in plan.experiments)
    if runs > MOST_RUNS or runs > max(_FEW, _MOST_A_CELL * len(plan.cells)):
        yield f"its experiments name {runs} runs, and its cells {len(plan.cells)}; at most {MOST_RUNS} can be shown"
    yield from _misplaced(plan)


def _inconsistent(table: Experiment) -> Iterator[str]:
    names = [method.name for method in table.methods]
    for what, each in (("methods", names), ("targets", table.targets), ("seeds", table.seeds)):
        if len(set(each)) != len(each):
            yield f"two {what} of {table.name} are the same"
    for what, name in (("baseline", table.baseline), ("method to compare against", table.against)):
        if name is not None and name not in names:
            yield f"the {what} of {table.name} is none of its methods"
    if table.criteria and not any(method.search for method in table.methods):
        yield f"{table.name} has criteria to select settings by, but no method with settings to select"


def _misplaced(plan: Plan) -> Iterator[str]:
    """Cells that belong to no run, or occur twice, and runs with only some of their method's candidates."""
    places = {
        table.name: ({one.name: one for one in table.methods}, frozenset(table.targets), frozenset(table.seeds))
        for table in plan.experiments
    }
    seen: set[tuple[str, str, str, int, int | None, str | None]] = set()
    tried: dict[tuple[str, str, str, int], int] = {}
    for index, cell in enumerate(plan.cells):
        methods, targets, seeds = places.get(cell.experiment, ({}, frozenset(), frozenset()))
        method = methods.get(cell.method)
        if method is None or cell.target not in targets or cell.seed not in seeds:
            yield f"cells[{index}] belongs to none of its experiments"
        elif not _may_be(cell, method):
            yield f"cells[{index}].candidate must be one of its method's, not {shown(cell.candidate)}"
        elif method.search:
            run = cell.experiment, cell.method, cell.target, cell.seed
            tried[run] = tried.get(run, 0) + (cell.left_out is None)
        seen.add((cell.experiment, cell.method, cell.target, cell.seed, cell.candidate, cell.left_out))
        if len(seen) <= index:
            yield f"cells[{index}] is the same run as another"
    for (table, name, target, seed), count in tried.items():
        search = places[table][0][name].search
        if search and count != len(search.candidates):
            yield f"the run of {name} at target {target}, seed {seed} is missing candidates"


def _may_be(cell: PlannedCell, method: Method) -> bool:
    if method.search is None or cell.candidate is None:
        return method.search is None and cell.candidate is None and cell.left_out is None
    return cell.candidate < len(method.search.candidates)
