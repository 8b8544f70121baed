"""Loads the modules of an entry-point group, one at a time, so that a broken one stops no other."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import pluggy

from msda_bench import hookspecs
from msda_bench.blame import blaming, package
from msda_bench.errors import BenchError
from msda_bench.marker import PROJECT

_OURS = "msda-bench"
"""The distribution of the built-in components, commands and sections."""


def entry_points(
    group: str, given: Iterable[importlib.metadata.EntryPoint] | None = None
) -> list[tuple[importlib.metadata.EntryPoint, str, str]]:
    """The entry points of a group, or those given, each with its distribution and version, ordered by these."""
    points = importlib.metadata.entry_points(group=group) if given is None else given
    placed = [(point, *_distribution(point)) for point in points]
    return sorted(placed, key=lambda entry: (*entry[1:], entry[0].name, entry[0].value))


class Brought(NamedTuple):
    """What a module of an entry-point group lists.

    Attributes:
        value: what it lists.
        origin: the distribution with its version.
        packages: the top-level packages whose lines are blamed for what the value raises; none for a built-in one,
            where any exception is a bug.
    """

    value: Any
    origin: str
    packages: frozenset[str]

    def blamed(self, what: str, passing: tuple[type[BaseException], ...] = ()) -> AbstractContextManager[None]:
        """Turns whatever the value raises into one line that begins with `what` and its origin; see `blaming`."""
        return blaming(self.packages, f"{what} of {self.origin}", passing) if self.packages else nullcontext()


def brought(
    group: str, hook: str, given: Iterable[importlib.metadata.EntryPoint] | None = None
) -> Iterator[Brought | str]:
    """All that the modules of a group list by its only hook, and a line for each part that cannot be used."""
    for point, distribution, version in entry_points(group, given):
        origin = f"{distribution} {version}"
        packages = frozenset() if distribution == _OURS else frozenset({package(point.value)})
        for part in listed(point, f"entry point {point.name!r} ({point.value})", (hook,)):
            yield f"{origin}: {part}" if isinstance(part, str) else Brought(part[1], origin, packages)


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
