"""Loads plugins from the entry-point group `msda_bench`, one at a time, so that none can harm another."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pluggy

from msda_bench import api, hookspecs
from msda_bench.blame import describe_with_place, package
from msda_bench.errors import pass_interrupt, printable
from msda_bench.marker import PROJECT
from msda_bench.plugins.process_state import put_back
from msda_bench.plugins.registry import Broken, Entry, Registry, read_attributes

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_HOOKS: dict[str, type[api.Component]] = {
    "msda_datasets": api.Dataset,
    "msda_backbones": api.Backbone,
    "msda_discrepancies": api.Discrepancy,
    "msda_aggregators": api.Aggregator,
    "msda_schemes": api.Scheme,
    "msda_validators": api.Validator,
    "msda_metrics": api.Metric,
}


def discover(entry_points: Iterable[importlib.metadata.EntryPoint] | None = None) -> Registry:
    """All installed components, and every plugin that could not be used with the reason.

    Args:
        entry_points: replace the installed entry points in tests.
    """
    points = importlib.metadata.entry_points(group=PROJECT) if entry_points is None else entry_points
    entries: list[Entry] = []
    broken: list[Broken] = []
    changed: list[str] = []
    for point in sorted(points, key=_identity):
        with put_back() as settings:
            for found in _load(point):
                (entries if isinstance(found, Entry) else broken).append(found)  # type: ignore[arg-type]
        if settings:
            what = f"entry point {point.name!r} ({point.value}) changed {' and '.join(settings)}"
            changed.append(str(_broken(point, what, "it was put back, since every run of the process shares it")))
    return Registry(entries, broken, changed)


def _identity(point: importlib.metadata.EntryPoint) -> tuple[str, str, str, str]:
    return (*_distribution(point), point.name, point.value)


def _distribution(point: importlib.metadata.EntryPoint) -> tuple[str, str]:
    try:
        return (printable(point.dist.name), printable(point.dist.version)) if point.dist else ("unknown", "?")
    except Exception:  # noqa: BLE001 - each Python version raises something else for unreadable metadata
        return ("unknown", "?")


def _load(point: importlib.metadata.EntryPoint) -> Iterator[Entry | Broken]:
    # One manager per plugin: pluggy's own loader drops a second distribution with an equal entry-point name.
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    what = f"entry point {point.name!r} ({point.value})"
    try:
        plugin = point.load()
        manager.register(plugin)
        manager.check_pending()
        callers = manager.get_hookcallers(plugin)
    except BaseException as error:  # noqa: BLE001 - a third-party import may raise anything
        pass_interrupt(error)
        yield _broken(point, what, _describe(point, error))
        return
    if not callers:
        yield _broken(point, what, f"implements no hook; mark a function such as {min(_HOOKS)} with @hookimpl")
    for hook in _HOOKS:
        yield from _call(point, hook, getattr(manager.hook, hook))


def _call(point: importlib.metadata.EntryPoint, hook: str, caller: Any) -> Iterator[Entry | Broken]:
    try:
        classes = [cls for found in caller() for cls in found]
    except BaseException as error:  # noqa: BLE001 - a third-party hook may raise anything
        pass_interrupt(error)
        yield _broken(point, f"hook {hook}", _describe(point, error))
        return
    for cls in classes:
        fault = _fault(point, cls, _HOOKS[hook])
        if fault:
            yield _broken(point, f"hook {hook}", f"{_called(cls)} {fault}")
        else:
            yield Entry(_HOOKS[hook].kind, cls, *_distribution(point))


def _broken(point: importlib.metadata.EntryPoint, what: str, why: str) -> Broken:
    return Broken(*_distribution(point), printable(what), printable(why))


def _called(cls: object) -> str:
    if issubclass(type(cls), type):
        return str(type.__dict__["__name__"].__get__(cls))
    return cls if type(cls) is str else f"a {_called(type(cls))}"


def _describe(point: importlib.metadata.EntryPoint, error: BaseException) -> str:
    return describe_with_place(error, {package(point.value)})


def _fault(point: importlib.metadata.EntryPoint, cls: Any, base: type[api.Component]) -> str | None:
    try:
        return _unusable(cls, base)
    except BaseException as error:  # noqa: BLE001 - a metaclass may raise anything
        pass_interrupt(error)
        return f"cannot be inspected: {_describe(point, error)}"


def _unusable(cls: Any, base: type[api.Component]) -> str | None:
    if not (isinstance(cls, type) and issubclass(cls, base)):
        return f"is not a subclass of msda_bench.api.{base.__name__}"
    name = getattr(cls, "name", None)
    # A subclass of str is refused: its hash could raise wherever components are looked up.
    if not (type(name) is str and NAME.fullmatch(name)):
        return f"needs a `name` of letters, digits, '_', '.' and '-', at most 64, not {name!r}"
    if "__pydantic_validator__" not in vars(cls):
        return "is not decorated with @component"
    if type(cls.version) is not int or cls.version < 1:
        return f"needs a whole `version` of at least 1, not {cls.version!r}"
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    if missing:
        return f"does not define {', '.join(missing)}"
    read_attributes(cls)
    return None if type(cls.description()) is str else "needs a `description` that returns text"
