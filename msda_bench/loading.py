"""Loads the modules of an entry-point group, one at a time, so that a broken one stops no other."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pluggy

from msda_bench import hookspecs
from msda_bench.blame import blaming, package
from msda_bench.errors import BenchError
from msda_bench.marker import PROJECT


def entry_points(
    group: str, given: Iterable[importlib.metadata.EntryPoint] | None = None
) -> list[tuple[importlib.metadata.EntryPoint, str, str]]:
    """The entry points of a group, or those given, each with its distribution and version, ordered by these."""
    points = importlib.metadata.entry_points(group=group) if given is None else given
    placed = [(point, *_distribution(point)) for point in points]
    return sorted(placed, key=lambda entry: (*entry[1:], entry[0].name, entry[0].value))


def _distribution(point: importlib.metadata.EntryPoint) -> tuple[str, str]:
    try:
        return (str(point.dist.name), str(point.dist.version)) if point.dist else ("unknown", "?")
    except Exception:  # noqa: BLE001 - each Python version raises something else for unreadable metadata
        return ("unknown", "?")


def listed(point: importlib.metadata.EntryPoint, what: str, hooks: Collection[str]) -> Iterator[tuple[str, Any] | str]:
    """All that the hooks of an entry point's module list, each with its hook, and a line for each part that fails.

    Args:
        point: the entry point.
        what: names it in lines.
        hooks: the names of the hooks that its group may have.
    """
    # One manager per plugin: pluggy's own loader drops a second distribution with an equal entry-point name.
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    packages = {package(point.value)}
    try:
        with blaming(packages, what):
            plugin = point.load()
            manager.register(plugin)
            manager.check_pending()
            names = {caller.name for caller in manager.get_hookcallers(plugin) or ()}
    except BenchError as fault:
        yield str(fault)
        return
    if others := sorted(names - {*hooks}):
        yield f"{what}: {' and '.join(others)} cannot be in the entry-point group {point.group}"
    elif not names:
        yield f"{what}: implements no hook; mark a function such as {min(hooks)} with @hookimpl"
    for hook in hooks:
        try:
            with blaming(packages, f"hook {hook}"):
                values = [value for values in getattr(manager.hook, hook)() for value in values]
        except BenchError as fault:
            yield str(fault)
            continue
        yield from ((hook, value) for value in values)


def claimed(what: str, origins: Iterable[str]) -> str:
    """The line on a name that several distributions claim."""
    return f"{what} is claimed by {' and '.join(origins)}; uninstall one of them"
