"""What must hold of the methods' `search`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msda_bench.suite.facts import Facts, weighs_sources
from msda_bench.suite.mistakes import Fault, Loc, hint, shown
from msda_bench.suite.plan import CHANCE, LEAVE_ONE_OUT, ORACLE
from msda_bench.suite.search import Settings, leaves_out, sees_target, space_of
from msda_bench.suite.search_space import Dimension, grid_size
from msda_bench.suite.spec import SelectSpec


def check_search(facts: Facts) -> Iterator[Fault]:
    """The mistakes in `select` and `search`; what rests on parts that are missing is not looked at."""
    select = facts.select
    if select is None:
        for name, method in facts.methods.items() if "select" in facts.parts else ():
            if method.search:
                yield Fault(("methods", name, "search"), "searches nothing without select in the suite", "key")
        return
    yield from _criterion(select, facts.validator_names)
    if facts.backbone and facts.training:
        settings = {name: Settings.of(method, facts.backbone, facts.training) for name, method in facts.methods.items()}
        if settings:
            yield from _unknown_paths(select, settings)
            yield from _refused_values(select, settings)
            yield from _uncounted(select, settings)
    if leaves_out(select):
        yield from _too_few_sources(select, facts)


def _criterion(select: SelectSpec, names: list[str]) -> Iterator[Fault]:
    for index, name in enumerate(names):
        if name in (ORACLE, LEAVE_ONE_OUT, CHANCE):
            what = f"{name} is what select calls something else; it cannot be a validator's name"
            yield Fault(("validators", index), what)
    known = [*names, LEAVE_ONE_OUT, ORACLE]
    if select.by not in known:
        yield Fault(("select", "by"), f"{shown(select.by)} is none of the suite's validators{hint(select.by, known)}")


def _dimensions(
    select: SelectSpec, methods: Mapping[str, Settings]
) -> Iterator[tuple[Loc, str, Dimension, list[Settings]]]:
    """Each dimension: where it stands, its path, and the methods that have such a parameter."""
    for path, found in select.space.items():
        having = [one for one in methods.values() if path in one.paths and path not in one.method.search]
        yield ("select", "space", path), path, found, having
    for name, one in methods.items():
        for path, found in one.method.search.items():
            yield ("methods", name, "search", path), path, found, [one] if path in one.paths else []


def _unknown_paths(select: SelectSpec, methods: Mapping[str, Settings]) -> Iterator[Fault]:
    known = dict.fromkeys(path for one in methods.values() for path in one.paths)
    for path in select.space:
        if path not in known:
            yield Fault(("select", "space", path), f"is a parameter of none of the methods{hint(path, known)}", "key")
    for name, one in methods.items():
        for path in one.method.search:
            if path not in one.paths:
                what = f"is no parameter of this method{hint(path, one.paths)}"
                yield Fault(("methods", name, "search", path), what, "key")


def _refused_values(select: SelectSpec, methods: Mapping[str, Settings]) -> Iterator[Fault]:
    for loc, path, found, having in _dimensions(select, methods):
        for below, value in found.corners:
            if what := next(filter(None, (_refusal(one, path, value) for one in having)), None):
                yield Fault((*loc, *below), what)


def _refusal(settings: Settings, path: str, value: Any) -> str | None:
    try:
        settings.having(path, value)
    except ValueError as error:
        return str(error)
    return None


def _uncounted(select: SelectSpec, methods: Mapping[str, Settings]) -> Iterator[Fault]:
    """What a grid cannot have: numbers without a count, or more candidates than the budget."""
    if select.how != "grid":
        return
    for loc, _, found, _ in _dimensions(select, methods):
        if found.size is None:
            yield Fault(loc, "is a range, of which a grid has no values; list them, or set how: random")
    for name, one in methods.items():
        size = grid_size(space_of(select, one))
        if size is not None and size > select.budget:
            what = f"is {select.budget}, but the grid of {name} has {size} candidates; list fewer values or raise it"
            yield Fault(("select", "budget"), what)


def _too_few_sources(select: SelectSpec, facts: Facts) -> Iterator[Fault]:
    """Without one of its sources a target must have one left, and two where methods weigh them."""
    weighing = any(weighs_sources(method) for method in facts.methods.values() if not sees_target(method))
    need = 3 if weighing else 2
    for target in facts.targets:
        count = len(facts.kept_sources(target))
        if 0 < count < need:
            loc: Loc = ("select", "by" if select.by == LEAVE_ONE_OUT else "leave_one_source_out")
            yield Fault(loc, f"target {shown(target)} has {count} sources; to leave one out takes {need}")
            return
