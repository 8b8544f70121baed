"""Finds plugins through the entry-point group `msda_bench`, one at a time, so that none can harm another."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pluggy

from msda_bench import api, hookspecs
from msda_bench.marker import PROJECT
from msda_bench.plugins.registry import Broken, Entry, Registry

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_HOOKS: dict[str, type[api.Component]] = {
    "msda_datasets": api.Dataset,
    "msda_backbones": api.Backbone,
    "msda_discrepancies": api.Discrepancy,
    "msda_aggregators": api.Aggregator,
    "msda_schemes": api.Scheme,
    "msda_validators": api.Validator,
}


def discover(entry_points: Iterable[importlib.metadata.EntryPoint] | None = None) -> Registry:
    """All installed components, and what could not be used and why.

    Args:
        entry_points: in place of those installed, for tests.
    """
    points = importlib.metadata.entry_points(group=PROJECT) if entry_points is None else entry_points
    entries: list[Entry] = []
    broken: list[Broken] = []
    for point in sorted(points, key=_identity):
        for found in _load(point):
            (entries if isinstance(found, Entry) else broken).append(found)  # type: ignore[arg-type]
    return Registry(entries, broken)


def _identity(point: importlib.metadata.EntryPoint) -> tuple[str, str, str, str]:
    return (*_distribution(point), point.name, point.value)


def _distribution(point: importlib.metadata.EntryPoint) -> tuple[str, str]:
    try:
        return (str(point.dist.name), str(point.dist.version)) if point.dist else ("unknown", "?")
    except Exception:  # noqa: BLE001 - an installation without readable metadata fails in a way of each Python's own
        return ("unknown", "?")


def _load(point: importlib.metadata.EntryPoint) -> Iterator[Entry | Broken]:
    # A manager for each plugin: pluggy's own loader drops a second distribution with the same entry-point name.
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    what = f"entry point {point.name!r} ({point.value})"
    try:
        plugin = point.load()
        manager.register(plugin)
        manager.check_pending()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a stranger's import may raise anything
        yield Broken(*_distribution(point), what, _one_line(error))
        return
    if not manager.get_hookcallers(plugin):
        yield Broken(
            *_distribution(point), what, f"implements no hook; mark a function such as {min(_HOOKS)} with @hookimpl"
        )
    for hook in _HOOKS:
        yield from _call(point, hook, getattr(manager.hook, hook))


def _call(point: importlib.metadata.EntryPoint, hook: str, caller: Any) -> Iterator[Entry | Broken]:
    try:
        classes = [cls for found in caller() for cls in found]
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a stranger's hook may raise anything
        yield Broken(*_distribution(point), f"hook {hook}", _one_line(error))
        return
    for cls in classes:
        fault = _fault(cls, _HOOKS[hook])
        if fault:
            yield Broken(*_distribution(point), f"hook {hook}", f"{getattr(cls, '__name__', cls)!s} {fault}")
        else:
            yield Entry(_HOOKS[hook].kind, cls, *_distribution(point))


def _fault(cls: object, base: type[api.Component]) -> str | None:
    if not (isinstance(cls, type) and issubclass(cls, base)):
        return f"is not a subclass of msda_bench.api.{base.__name__}"
    name = getattr(cls, "name", None)
    if not (isinstance(name, str) and NAME.fullmatch(name)):
        return f"needs a `name` of letters, digits, '_', '.' and '-', at most 64, not {name!r}"
    if "__pydantic_validator__" not in vars(cls):
        return "is not decorated with @component"
    if type(cls.version) is not int or cls.version < 1:
        return f"needs a whole `version` of at least 1, not {cls.version!r}"
    missing = sorted(getattr(cls, "__abstractmethods__", ()))
    return f"does not define {', '.join(missing)}" if missing else None


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text}"[:500]
