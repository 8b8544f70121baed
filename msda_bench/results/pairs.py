"""Compares two methods over common seeds: tests, effect sizes, and corrections for a family of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from msda_bench.results.effect import paired_effect
from msda_bench.results.signed_rank import Number, SignedRank, signed_rank_tests

Scope: TypeAlias = Literal["target", "average", "across_targets", "across_datasets"]
Row: TypeAlias = dict[str, Any]
"""A row of comparisons.csv by column; `p_first` and `p_second` are one-sided: that method is the better one."""

MIN_PAIRS_ACROSS = 6
"""The fewest targets or datasets to test across: a two-sided test of fewer pairs cannot reach 0.05."""
ALL_PAIRS = "all_pairs"
MOST_ALL_PAIRS = 6
"""Up to this many ranked methods, tables compare all pairs; beyond, each method with the control."""

_EFFECT = {"mean": "mean_difference", "median": "median_difference", "low": "hl_low", "high": "hl_high"}


def enough_pairs(n: int, alpha: float) -> bool:
    """Whether n pairs can be significant in a one-sided signed-rank test."""
    return 0.5**n <= alpha


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusts p-values for the family-wise error rate: rejecting those at most alpha keeps it at most alpha.

    The j-th smallest of m becomes the running maximum of (m - j + 1) p_(j), capped at 1 (Holm 1979).
    """
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for done, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        running = max(running, min(1.0, (len(p_values) - done) * p_values[index]))
        adjusted[index] = running
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusts p-values for the false discovery rate: rejecting those at most alpha keeps it at most alpha.

    The j-th smallest of m becomes the least of m / i p_(i) over i >= j, capped at 1 (Benjamini and Hochberg 1995).
    Equals scipy's `false_discovery_control`, which takes half a second to import.
    """
    adjusted = [0.0] * len(p_values)
    running = 1.0
    for place, index in reversed([*enumerate(sorted(range(len(p_values)), key=p_values.__getitem__), start=1)]):
        running = min(running, len(p_values) / place * p_values[index])
        adjusted[index] = running
    return adjusted


def compared(
    scope: Scope,
    target: str | None,
    pair: tuple[str, str],
    differences: Sequence[Number],
    n_planned: int,
    *,
    complete: bool,
    alpha: float,
    unit: Fraction = Fraction(1),
) -> Row:
    """Compares a pair by its differences in merit, in multiples of `unit`; not yet adjusted for a family."""
    tests = signed_rank_tests(differences)
    test, n_paired = tests["two-sided"], len(differences)
    attainable = 0.5**test.n
    across = scope in {"across_targets", "across_datasets"}
    conclusive = attainable <= alpha and not (across and n_paired < MIN_PAIRS_ACROSS)
    row: Row = {"scope": scope, "target": target, "first": pair[0], "second": pair[1], "better": None}
    row |= {"n_planned": n_planned, "n_paired": n_paired, "n_zero": test.n_zero, "alpha": alpha}
    row |= {"attainable_p": attainable, "conclusive": conclusive}
    row["status"] = _status(test, whole=complete and n_paired >= n_planned, conclusive=conclusive)
    if not differences:
        return row
    effect = asdict(paired_effect(differences, alpha, unit))
    if effect["mean"]:
        row["better"] = pair[0] if effect["mean"] > 0 else pair[1]
    p_first, p_second = tests["greater"].p, tests["less"].p
    row |= {_EFFECT.get(name, name): value for name, value in effect.items()}
    row |= {"statistic": test.statistic, "p_two_sided": test.p, "p_first": p_first, "p_second": p_second}
    return row | {"p_one_sided": p_second if row["better"] == pair[1] else p_first}


def _status(test: SignedRank, *, whole: bool, conclusive: bool) -> str:
    """The caveat on the p-values that matters most; missing pairs come first."""
    if not whole:
        return "incomplete"
    if test.status == "no_differences":
        return "no_differences"
    return "ok" if conclusive else "too_few_pairs"


def adjusted(rows: Sequence[Row], alpha: float, control: str | None = None, family: str = ALL_PAIRS) -> list[Row]:
    """Adjusts the p-values of one scope and target, over all comparisons and over those with the control.

    The chosen family decides `significant`, which is None for pairs outside the family. Neither `significant` nor
    `significant_holm` is given where no difference could reach alpha after the correction that it belongs to.
    """
    p_values = [row.get("p_two_sided", 1.0) for row in rows]
    attainable = [min(1.0, 2 * row["attainable_p"]) for row in rows]
    corrected = zip(rows, holm(p_values), holm(attainable), benjamini_hochberg(p_values), strict=True)
    found = [row | _corrected(row, p, smallest, alpha) | {"p_bh": p_bh} for row, p, smallest, p_bh in corrected]
    found = [row if "p_two_sided" in row else row | {"p_holm": None, "p_bh": None} for row in found]
    mine = [place for place, row in enumerate(found) if control in {row["first"], row["second"]}]
    own = zip(mine, holm([p_values[place] for place in mine]), holm([attainable[place] for place in mine]), strict=True)
    for place, p, smallest in own:
        tested = "p_two_sided" in found[place]
        found[place] |= {"p_holm_control": p if tested else None, "attainable_p_holm_control": smallest}
    kind = "" if family == ALL_PAIRS else "_control"
    for row in found:
        of_family = row.get(f"p_holm{kind}"), row.get(f"attainable_p_holm{kind}", 1.0)
        row |= {"control": control, "family": family, "significant": _significant(row, *of_family, alpha)}
    return found


def _corrected(row: Row, p_holm: float, attainable: float, alpha: float) -> Row:
    significant = _significant(row, p_holm, attainable, alpha)
    return {"p_holm": p_holm, "attainable_p_holm": attainable, "significant_holm": significant}


def _significant(row: Row, p: float | None, attainable: float, alpha: float) -> bool | None:
    """Whether a corrected p is at most alpha; None if the pairs are too few for any difference to reach alpha."""
    return p <= alpha if p is not None and row["conclusive"] and attainable <= alpha else None
