"""Holm's step-down correction for several tests."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusts p-values so that rejecting those at most alpha errs anywhere with probability at most alpha.

    The j-th smallest of m becomes the running maximum of (m - j + 1) p_(j), capped at 1 (Holm 1979).

    Args:
        p_values: one a test of the family, in any order.

    Returns:
        The adjusted p-values, in the same order.
    """
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for done, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        running = max(running, min(1.0, (len(p_values) - done) * p_values[index]))
        adjusted[index] = running
    return tuple(adjusted)
