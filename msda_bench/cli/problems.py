"""Tells of the plugins that could not be used."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

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
        print(f"msda-bench: {'error' if fatal else 'warning'}: {problem}", file=sys.stderr)
    return 2 if problems else 0


def warn_of(lines: Iterable[str]) -> None:
    """Prints warnings to stderr."""
    for line in lines:
        print(f"msda-bench: warning: {line}", file=sys.stderr)
