"""Names of a module that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def deferred(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__` (PEP 562) for names that other modules define.

    Args:
        module: its name, for errors.
        homes: the names, separated by spaces, by the module that defines them.
    """
    home_of = {}
    for home, names in homes.items():
        for name in names.split():
            home_of[name] = home

    def imported(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(home_of[name]), name)

    return imported
