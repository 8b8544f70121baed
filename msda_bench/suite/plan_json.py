"""A plan as JSON, for plan.json in the result folder."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

from pydantic import TypeAdapter, ValidationError

from msda_bench.errors import StoreError
from msda_bench.suite.faults import PLAIN_NAME, PLAIN_WORDS, faults
from msda_bench.suite.mistakes import dotted, shown
from msda_bench.suite.plan import Plan, PlannedCell, Search

PLAN_SCHEMA = 1
"""Version of the layout."""
_KEY = re.compile(r"[0-9a-f]{64}")


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain JSON values."""
    plain: dict[str, Any] = _adapter().dump_python(plan, mode="json")
    methods = [method for table in plain["experiments"] for method in table["methods"]]
    # What came later is left out where it says nothing, so that older plans stay as they are.
    for parts, later in (
        (plain["experiments"], ("baseline", "published", "criteria", "against")),
        (methods, ("search",)),
        (plain["cells"], ("candidate", "left_out")),
    ):
        for part, name in product(parts, later):
            if part[name] is None or part[name] == []:
                del part[name]
    return {"schema": PLAN_SCHEMA, **plain}


def plan_from_json(value: dict[str, Any]) -> Plan:
    """The plan of `plan_to_json`.

    Raises:
        StoreError: it is of a newer layout, or not a plan.
    """
    if not isinstance(value, dict):
        raise StoreError(f"plan.json: not a plan: must be a mapping, not {shown(value)}")
    schema = value.get("schema")
    if isinstance(schema, int) and schema > PLAN_SCHEMA:
        raise StoreError(
            f"plan.json: is of layout {schema}, but this msda-bench reads {PLAN_SCHEMA}; install a newer one"
        )
    if type(schema) is not int or schema != PLAN_SCHEMA:
        raise StoreError(f"plan.json: not a plan: schema must be {PLAN_SCHEMA}, not {shown(schema)}")
    plan = _validate({key: item for key, item in value.items() if key != "schema"})
    wrong = "has keys that a plan has not" if plan_to_json(plan) != value else next(_wrong(plan), None)
    if wrong:
        raise StoreError(f"plan.json: not a plan: {wrong}")
    return plan


def _validate(value: dict[str, Any]) -> Plan:
    try:
        # By way of JSON, because strict Python mode would refuse the list that JSON holds for a tuple.
        return _adapter().validate_json(json.dumps(value, allow_nan=False), strict=True)
    except ValidationError as error:
        first = next(iter(faults(error, lambda _: ("key", []))))
        raise StoreError(f"plan.json: not a plan: {dotted(first.loc)}: {first.what}") from None
    except (TypeError, ValueError) as error:
        raise StoreError(f"plan.json: not a plan: {error}") from None


@functools.cache  # building it takes longer than reading most plans
def _adapter() -> TypeAdapter[Plan]:
    return TypeAdapter(Plan)


def _wrong(plan: Plan) -> Iterator[str]:
    yield from _misnamed(plan)
    yield from _inconsistent(plan)
    yield from _misplaced(plan)
    yield from _lacking(plan)


def _misnamed(plan: Plan) -> Iterator[str]:
    """Names become parts of file names, and a plan may come from anyone."""
    methods = (method.name for table in plan.experiments for method in table.methods)
    for name in (plan.suite, *(table.name for table in plan.experiments), *methods):
        if not re.fullmatch(PLAIN_NAME, name):
            yield f"the name of a suite or method must be {PLAIN_WORDS}, not {shown(name)}"


def _inconsistent(plan: Plan) -> Iterator[str]:
    if len({experiment.name for experiment in plan.experiments}) != len(plan.experiments):
        yield "two experiments have the same name"
    rows = {(table.name, method.name) for table in plan.experiments for method in table.methods}
    for table in plan.experiments:
        if table.baseline is not None and (table.name, table.baseline) not in rows:
            yield f"the baseline of {table.name} is none of its methods"
        if table.published and len({tuple(cell.column for cell in row.cells) for row in table.published.rows}) != 1:
            yield f"the published table of {table.name} has no rows, or rows of different columns"


def _misplaced(plan: Plan) -> Iterator[str]:
    rows = {(table.name, method.name): method for table in plan.experiments for method in table.methods}
    columns = {(table.name, target) for table in plan.experiments for target in table.targets}
    runs = {(table.name, seed) for table in plan.experiments for seed in table.seeds}
    for index, cell in enumerate(plan.cells):
        name = cell.experiment
        if not ((name, cell.method) in rows and (name, cell.target) in columns and (name, cell.seed) in runs):
            yield f"cells[{index}] belongs to none of its experiments"
        elif not _KEY.fullmatch(cell.key):
            yield f"cells[{index}].key must be a sha256, not {shown(cell.key)}"
        elif not _may_be(cell, rows[name, cell.method].search):
            yield f"cells[{index}].candidate must be one of its method's, not {shown(cell.candidate)}"


def _may_be(cell: PlannedCell, search: Search | None) -> bool:
    if search is None or cell.candidate is None:
        return search is None and cell.candidate is None and cell.left_out is None
    return 0 <= cell.candidate < len(search.candidates)


def _lacking(plan: Plan) -> Iterator[str]:
    """A run with some of its method's candidates has all."""
    found: dict[tuple[str, str, str, int], set[int | None]] = {}
    for cell in plan.cells:
        tried = found.setdefault((cell.experiment, cell.method, cell.target, cell.seed), set())
        if cell.left_out is None:
            tried.add(cell.candidate)
    searches = {(table.name, method.name): method.search for table in plan.experiments for method in table.methods}
    for (table, method, target, seed), tried in found.items():
        search = searches.get((table, method))
        if search is not None and tried != set(range(len(search.candidates))):
            yield f"the run of {method} at target {target}, seed {seed} lacks candidates"
