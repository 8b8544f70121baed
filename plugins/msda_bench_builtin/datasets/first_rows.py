"""Rows that every first suite has beside its deep methods: plain models, and what each domain standardised gives."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator

Row = tuple[str, str]
"""A method's name, and what a suite says of it."""
_DOMAIN = "standardise: domain"
_BOOSTED = 2000
"""Columns times classes for which boosting takes seconds rather than minutes."""
_SQUARED = 1000
"""Columns whose covariances take a second at most."""
_ALPHA = 0.05


def control_rows(columns: int, classes: int, *, several: bool) -> Iterator[Row]:
    """The rows that can be trained here.

    Args:
        columns: how many numbers an example is; 0 for one that is no row of numbers, as plain models need it.
        classes: how many classes are predicted; 0 for a number.
        several: whether every target has two sources, which an adapter that is told the domains needs.
    """
    yield "SRC-domain", f"{{scheme: pooled, {_DOMAIN}}}"
    if not columns or not _installed("sklearn"):
        return
    plain = {"logistic": "logistic_regression"} if classes else {"ridge": "ridge"}
    plain |= {"boosting": "gradient_boosting"} if columns * max(1, classes) <= _BOOSTED else {}
    plain |= {"forest": "random_forest"}
    for name, scheme in plain.items():
        yield name, f"{{scheme: {scheme}}}"
        yield f"{name}-domain", f"{{scheme: {scheme}, {_DOMAIN}}}"
    if several and columns <= _SQUARED and _installed("skada", "ot"):
        behind = "logistic_regression" if classes else "ridge"
        yield f"CORAL-{next(iter(plain))}", f"{{scheme: {{skada: {{adapter: CORAL, estimator: {behind}}}}}}}"


def _installed(*modules: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in modules)


def needed_seeds(rows: list[Row]) -> tuple[int, int]:
    """The fewest seeds that can show a gain over the first row, and the number of comparisons with it.

    An exact test of n seeds can reach 2 / 2^n at best, times the number of comparisons.
    """
    compared = sum("reference: true" not in recipe for _, recipe in rows) - 1
    return 1 + math.ceil(math.log2(compared / _ALPHA)), compared


def written(rows: list[Row]) -> str:
    """The rows as lines of YAML below `methods`."""
    width = max(len(name) for name, _ in rows) + 1
    return "\n".join(f"  {name + ':':{width}} {recipe}" for name, recipe in rows)
