"""Marks what spoils a component with the clause that it breaks and how the kit says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msda_bench.api import component


def sin(clause: str, message: str) -> Callable[[type], Any]:
    """Makes a component of a class that breaks this clause with this message."""

    def mark(cls: Any) -> Any:
        broken = vars(cls).get("broken", ())
        if not broken:
            cls.__doc__ = message
            cls = component(cls)
        cls.broken = ((clause, message), *broken)
        return cls

    return mark
