"""What to know of a comparison before reading its p-values."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msda_bench.stats.wilcoxon import SignedRank

ComparisonStatus: TypeAlias = Literal["ok", "no_differences", "too_few_pairs", "incomplete"]


def comparison_status(test: SignedRank, *, whole: bool, tellable: bool) -> ComparisonStatus:
    """The first that holds; what is missing comes first.

    Args:
        test: of the differences.
        whole: whether every planned run stands behind them.
        tellable: whether so many could be significant at all.
    """
    if not whole:
        return "incomplete"
    if test.status == "no_differences":
        return "no_differences"
    return "ok" if tellable else "too_few_pairs"
