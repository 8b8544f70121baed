"""Tells of the plugins that could not be used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msda_bench.cli.lines import warn

if TYPE_CHECKING:
    from msda_bench.plugins import Registry


def tell_problems(registry: Registry, others: Iterable[str] = (), *, fatal: bool = True) -> int:
    """Prints a line to stderr for each broken plugin, each name that is claimed twice, and each other problem, once.

    Args:
        registry: what was found.
        others: lines of the command's own.
        fatal: whether they are errors, or warnings of what the command may not need.

    Returns:
        2 if there were any, 0 if not.
    """
    problems = dict.fromkeys([*map(str, registry.broken), *registry.conflicts, *others])
    for problem in problems:
        warn(f"{'error' if fatal else 'warning'}: {problem}")
    return 2 if problems else 0


def warn_of(lines: Iterable[str]) -> None:
    """Prints warnings to stderr."""
    for line in lines:
        warn(f"warning: {line}")
