"""What must hold of `select` and of the methods' `search`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msda_bench.api import Dataset
from msda_bench.errors import pass_interrupt
from msda_bench.suite.choice import Choice
from msda_bench.suite.faults import Fault
from msda_bench.suite.mistakes import Loc, hint, shown
from msda_bench.suite.plan import CHANCE, LEAVE_ONE_OUT, ORACLE
from msda_bench.suite.search import leaves_out, sees_target, space_of
from msda_bench.suite.search_candidates import grid_size
from msda_bench.suite.search_paths import Parts, settable, with_setting
from msda_bench.suite.search_space import Dimension
from msda_bench.suite.spec import MethodSpec, SelectSpec

_TWO, _THREE = 2, 3


def check_search(sound: Mapping[str, Any], default_validator: str) -> Iterator[Fault]:
    """The mistakes in `select` and `search`; what rests on parts that are missing here is not looked at.

    Args:
        sound: the sound parts of an experiment.
        default_validator: the one that it has unless it names others.
    """
    methods: Mapping[str, MethodSpec] = sound.get("methods") or {}
    if "select" not in sound:
        return
    select: SelectSpec | None = sound["select"]
    if select is None:
        for name, method in methods.items():
            if method.search:
                yield Fault(("methods", name, "search"), "searches nothing without select in the suite", "key")
        return
    yield from _criterion(select, sound, default_validator)
    if {"methods", "backbone", "training"} <= sound.keys():
        parts = {name: Parts.of(method, sound["backbone"], sound["training"]) for name, method in methods.items()}
        yield from _unknown(select, parts)
        yield from _refused(select, parts)
        yield from _uncounted(select, parts)
    if leaves_out(select):
        yield from _too_few_sources(select, sound)


def _criterion(select: SelectSpec, sound: Mapping[str, Any], default: str) -> Iterator[Fault]:
    listed: list[Choice[Any]] | None = sound.get("validators")
    names = [choice.name for choice in listed] if listed is not None else [default]
    for index, name in enumerate(names):
        if name in (ORACLE, LEAVE_ONE_OUT, CHANCE):
            yield Fault(
                ("validators", index), f"{name} is what select calls something else; it cannot be a validator's name"
            )
    known = [*names, LEAVE_ONE_OUT, ORACLE]
    if select.by not in known:
        yield Fault(("select", "by"), f"{shown(select.by)} is none of the suite's validators{hint(select.by, known)}")


def _places(select: SelectSpec, parts: Mapping[str, Parts]) -> Iterator[tuple[Loc, str, Dimension, list[Parts]]]:
    """Each dimension: where it stands, its path, and the methods that have such a parameter."""
    for path, found in select.space.items():
        having = [one for one in parts.values() if path in settable(one) and path not in one.method.search]
        yield ("select", "space", path), path, found, having
    for name, one in parts.items():
        for path, found in one.method.search.items():
            yield ("methods", name, "search", path), path, found, [one] if path in settable(one) else []


def _unknown(select: SelectSpec, parts: Mapping[str, Parts]) -> Iterator[Fault]:
    for path in select.space:
        known = dict.fromkeys(path for one in parts.values() for path in settable(one))
        if path not in known:
            yield Fault(("select", "space", path), f"is a parameter of none of the methods{hint(path, known)}", "key")
    for name, one in parts.items():
        for path in one.method.search:
            if path not in settable(one):
                what = f"is no parameter of this method{hint(path, settable(one))}"
                yield Fault(("methods", name, "search", path), what, "key")


def _refused(select: SelectSpec, parts: Mapping[str, Parts]) -> Iterator[Fault]:
    for loc, path, found, having in _places(select, parts):
        for below, value in found.corners:
            if fault := next((fault for one in having if (fault := _refusal(one, path, value))), None):
                yield Fault((*loc, *below), fault)


def _refusal(parts: Parts, path: str, value: Any) -> str | None:
    try:
        with_setting(parts, path, value)
    except ValueError as error:
        return str(error)
    return None


def _uncounted(select: SelectSpec, parts: Mapping[str, Parts]) -> Iterator[Fault]:
    """What a grid cannot have: numbers without a count, or more candidates than the budget."""
    if select.how != "grid":
        return
    for loc, _, found, _ in _places(select, parts):
        if found.size is None:
            yield Fault(loc, "is a range, of which a grid has no values; list them, or set how: random")
    for name, one in parts.items():
        size = grid_size(space_of(select, one))
        if size is not None and size > select.budget:
            what = f"is {select.budget}, but the grid of {name} has {size} candidates; list fewer values or raise it"
            yield Fault(("select", "budget"), what)


def _too_few_sources(select: SelectSpec, sound: Mapping[str, Any]) -> Iterator[Fault]:
    """Without one of its sources a target must have one left, and two where methods weigh them."""
    data: Choice[Dataset] = sound["dataset"]
    methods: Mapping[str, MethodSpec] = sound.get("methods") or {}
    wanted: tuple[str, ...] | None = sound.get("sources")
    weighing = any(_groups_apart(method) for method in methods.values() if not sees_target(method))
    need = _THREE if weighing else _TWO
    for target in sound.get("targets") or data.component.targets:
        if target in data.component.targets:
            kept = [source for source in data.component.sources(target) if wanted is None or source in wanted]
            if 0 < len(kept) < need:
                loc: Loc = ("select", "by" if select.by == LEAVE_ONE_OUT else "leave_one_source_out")
                yield Fault(loc, f"target {shown(target)} has {len(kept)} sources; to leave one out takes {need}")
                return


def _groups_apart(method: MethodSpec) -> bool:
    """Whether two sources are two groups; by the scheme's own word, which may fail for names that it does not know."""
    try:
        return len(method.scheme.component.groups(("a", "b"), "t")) > 1
    except BaseException as error:  # noqa: BLE001 - a stranger's scheme may raise anything; reported when it trains
        pass_interrupt(error)
        return False
