"""A plan as JSON, for plan.json in the result folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from msda_bench.errors import StoreError
from msda_bench.suite.faults import faults
from msda_bench.suite.mistakes import dotted, shown
from msda_bench.suite.plan import Plan

PLAN_SCHEMA = 1
"""Version of the layout."""
_KEY = re.compile(r"[0-9a-f]{64}")


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain JSON values."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(plan), allow_nan=False))
    return {"schema": PLAN_SCHEMA, **plain}


def plan_from_json(value: dict[str, Any]) -> Plan:
    """The plan of `plan_to_json`.

    Raises:
        StoreError: it is of a newer layout, or not a plan.
    """
    if not isinstance(value, dict):
        raise StoreError(f"not a plan: must be a mapping, not {shown(value)}")
    schema = value.get("schema")
    if isinstance(schema, int) and schema > PLAN_SCHEMA:
        raise StoreError(
            f"the plan is of layout {schema}, but this msda-bench reads {PLAN_SCHEMA}; install a newer one"
        )
    if type(schema) is not int or schema != PLAN_SCHEMA:
        raise StoreError(f"not a plan: schema must be {PLAN_SCHEMA}, not {shown(schema)}")
    plan = _validate({key: item for key, item in value.items() if key != "schema"})
    wrong = next(_inconsistent(plan), None)
    if wrong:
        raise StoreError(f"not a plan: {wrong}")
    return plan


def _validate(value: dict[str, Any]) -> Plan:
    adapter = TypeAdapter(Plan, config=ConfigDict(extra="forbid", strict=True))
    try:
        # By way of JSON, because strict Python mode would refuse the list that JSON holds for a tuple.
        return adapter.validate_json(json.dumps(value, allow_nan=False))
    except ValidationError as error:
        first = next(iter(faults(error, lambda _: ("key", []))))
        raise StoreError(f"not a plan: {dotted(first.loc)}: {first.what}") from None
    except (TypeError, ValueError) as error:
        raise StoreError(f"not a plan: {error}") from None


def _inconsistent(plan: Plan) -> Iterator[str]:
    tables = {experiment.name: experiment for experiment in plan.experiments}
    if len(tables) != len(plan.experiments):
        yield "two experiments have the same name"
    for index, cell in enumerate(plan.cells):
        table = tables.get(cell.experiment)
        known = table is not None and cell.target in table.targets and cell.seed in table.seeds
        if table is None or not known or cell.method not in {method.name for method in table.methods}:
            yield f"cells[{index}] belongs to none of its experiments"
        elif not _KEY.fullmatch(cell.key):
            yield f"cells[{index}].key must be a sha256, not {shown(cell.key)}"
