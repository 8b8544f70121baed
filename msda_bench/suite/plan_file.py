"""plan.json: a plan in a result folder, so that tables can be made without the suite and the plugins that trained.

It is validated when it is read, since anyone may have written it.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from msda_bench.errors import StoreError
from msda_bench.suite.issues import dotted, issues_of, shown_value
from msda_bench.suite.plan import MANY, Experiment, Name, Plan
from msda_bench.suite.run_spec import refuse_overflow

PLAN_SCHEMA = 1
"""Version of the layout."""
PLAN_LIMIT = 1 << 29
"""The maximum size of a plan.json in bytes, enough for two million runs."""
MOST_RUNS = 5_000_000
"""The maximum number of runs in a plan, each a row of every frame of results."""
_FEW = 10_000
_MOST_A_RUN = 10
"""The maximum number of runs of tables for each run in the plan, unless they are few; a plan from a suite has one."""


class NewerPlanError(StoreError):
    """A plan in a layout of a newer msda-bench."""


def _of_this_layout(schema: object) -> object:
    if isinstance(schema, int) and schema > PLAN_SCHEMA:
        which = f"{shown_value(schema)}, but this msda-bench reads {PLAN_SCHEMA}"
        raise NewerPlanError(f"plan.json: is of layout {which}; install a newer one")
    if type(schema) is not int or schema != PLAN_SCHEMA:
        raise _no_plan(f"schema must be {PLAN_SCHEMA}, not {shown_value(schema)}")
    return schema


@dataclass(frozen=True)
class _RecordedExperiment(Experiment):
    """An experiment with the former options of plans that were recorded before these were removed."""

    against: Name | None = None
    margin: float | None = None
    primary: tuple[Name, ...] = ()

    @property
    def current(self) -> Experiment:
        """The experiment without former options and the former criterion EnsV."""
        values = {column.name: getattr(self, column.name) for column in fields(Experiment)}
        values["criteria"] = tuple(by for by in self.criteria if by != "ensv")
        if self.against is not None:
            values["pairs"] = "baseline"
        return Experiment(**values)


@dataclass(frozen=True)
class _File(Plan):
    experiments: Annotated[tuple[_RecordedExperiment, ...], MANY]
    schema: Annotated[Any, AfterValidator(_of_this_layout), Field(validate_default=True)] = None


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain JSON values, without those at their default, which must therefore never change."""
    return {"schema": PLAN_SCHEMA, **_adapter(Plan).dump_python(plan, mode="json", exclude_defaults=True)}


def parse_plan(data: bytes) -> Plan:
    """The plan in the bytes of a plan.json; a StoreError if it is invalid or too large."""
    try:
        refuse_overflow(data)
        # From JSON, because strict Python mode would refuse the list that JSON holds for a tuple.
        file = _adapter(_File).validate_json(data, strict=True)
    except ValidationError as error:
        first = next(issues_of(error))
        where = f"{dotted(first.loc)}: " if first.loc else ""
        raise _no_plan(f"{where}{first.what}") from None
    except (ValueError, RecursionError) as error:
        raise _no_plan(str(error)) from None
    plan = Plan(file.suite, tuple(table.current for table in file.experiments), file.cells)
    wrong = next(_wrong(plan), None)
    if wrong is not None:
        raise _no_plan(wrong)
    return plan


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
    if runs > MOST_RUNS or runs > max(_FEW, _MOST_A_RUN * len(plan.cells)):
        yield f"its experiments name {runs} runs, and its `cells` {len(plan.cells)}; at most {MOST_RUNS} can be shown"
    yield from _misplaced(plan)


def _inconsistent(table: Experiment) -> Iterator[str]:
    names = [method.name for method in table.methods]
    for what, values in (("methods", names), ("targets", table.targets), ("seeds", table.every_seed)):
        if len(set(values)) != len(values):
            yield f"two {what} of {table.name} are the same"
    for key, name in table.named_methods.items():
        if name not in names:
            yield f"the {key} of {table.name} is none of its methods"
    if table.tuning and not set(table.tuning.tracks) <= set(table.criteria):
        yield f"a track of {table.name} is none of its criteria"
    if table.criteria and not any(method.search for method in table.methods):
        yield f"{table.name} has criteria to select settings by, but no method with settings to select"


def _misplaced(plan: Plan) -> Iterator[str]:
    """Runs of no experiment or that occur twice, and runs with only some of their method's candidates."""
    places = {table.name: (frozenset(table.targets), frozenset(table.every_seed)) for table in plan.experiments}
    sizes = _candidates(plan)
    seen: set[tuple[object, ...]] = set()
    tried: Counter[tuple[str, str, str, int]] = Counter()
    for index, run in enumerate(plan.cells):
        targets, seeds = places.get(run.experiment, (frozenset(), frozenset()))
        size, candidate = sizes.get((run.experiment, run.method)), run.candidate
        if size is None or run.target not in targets or run.seed not in seeds:
            yield f"cells[{index}] belongs to none of its experiments"
        elif (candidate is None) != (size == 0) or (candidate or 0) >= max(size, 1):
            yield f"cells[{index}].candidate must be one of its method's, not {shown_value(candidate)}"
        place = run.experiment, run.method, run.target, run.seed
        tried[place] += 1
        seen.add((*place, candidate))
        if len(seen) <= index:
            yield f"cells[{index}] is the same run as another"
    for (experiment, method, target, seed), count in tried.items():
        size = sizes.get((experiment, method))
        if size and count != size:
            yield f"the run of {method} at target {target}, seed {seed} is missing candidates"


def _candidates(plan: Plan) -> dict[tuple[str, str], int]:
    """The number of candidates of each experiment's methods, 0 where nothing is selected."""
    sizes = {}
    for table in plan.experiments:
        for method in table.methods:
            sizes[table.name, method.name] = len(method.search.candidates) if method.search else 0
    return sizes
