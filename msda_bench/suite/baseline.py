"""The baseline of an experiment: the method without adaptation that the others are to gain over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msda_bench.suite.faults import Fault
from msda_bench.suite.mistakes import hint, shown
from msda_bench.suite.spec import NO_DISCREPANCY, POOLED, MethodSpec


def baseline_of(methods: Mapping[str, MethodSpec], named: str | None) -> str | None:
    """The method that the suite names, or else the only one that pools the sources and adapts to nothing.

    Args:
        methods: of the experiment.
        named: `compare.baseline`.

    Returns:
        Its name; None where there is no such method, or several.
    """
    plain = [name for name, method in methods.items() if _is_plain(method)]
    return named or (plain[0] if len(plain) == 1 else None)


def check_comparison(sound: Mapping[str, Any]) -> Iterator[Fault]:
    """The mistakes in `compare.baseline` and `compare.against`."""
    methods: Mapping[str, MethodSpec] = sound.get("methods") or {}
    for key in ("baseline", "against"):
        named: str | None = getattr(sound["compare"], key) if "compare" in sound else None
        if named is None or not methods:
            continue
        if named not in methods:
            yield Fault(("compare", key), f"{shown(named)} is none of the methods{hint(named, methods)}")
        elif methods[named].reference:
            yield Fault(("compare", key), f"{shown(named)} is a reference; name a method that is ranked")


def _is_plain(method: MethodSpec) -> bool:
    adapts = method.discrepancy is not None and method.discrepancy.name != NO_DISCREPANCY
    return method.scheme.name == POOLED and not (adapts or method.mu or method.reference or method.labelled_target)
