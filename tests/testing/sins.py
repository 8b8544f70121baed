"""Marks broken components with the clause that they break and the kit's message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msda_bench.api import component


def sin(clause: str, message: str) -> Callable[[type], Any]:
    """Decorates a class as a component that breaks this clause with this message."""

    def mark(cls: Any) -> Any:
        broken = vars(cls).get("broken", ())
        if not broken:
            cls.__doc__ = message
            cls = component(cls)
        cls.broken = ((clause, message), *broken)
        return cls

    return mark
