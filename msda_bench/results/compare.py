"""Compares methods over paired runs; filters these comparisons, and turns them towards one method."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from msda_bench.results.across import across_datasets
from msda_bench.results.argument_checks import FrameSchema
from msda_bench.results.decision import (
    ALL_PAIRS,
    BETTER,
    NOT_SIGNIFICANT,
    OPPOSITE,
    WORSE,
    PairedComparison,
    comparisons,
)
from msda_bench.results.frame import AVERAGE, runs_of
from msda_bench.results.scores import score_tables

_TEXTS = ("experiment", "metric", "scope", "target", "first", "second", "outcome", "reason", "family")
_COUNTS = ("n_family", "n_planned", "n_paired")
_SIZES = ("p", "p_holm", "mean_difference", "difference_low", "difference_high", "detectable")
COLUMNS = (*_TEXTS, *_COUNTS, *_SIZES)
"""The columns of comparisons.csv, explained in docs/results.md."""


def compare(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Compares ranked methods by exact signed-rank tests: all pairs, or each with the baseline and with the best.

    Args:
        runs: a result folder, a frame from `load_results`, or some of its rows, which are compared as if they were the
            whole plan.

    Returns:
        One row per pair, in the columns of comparisons.csv (docs/results.md): experiment by experiment, target by
        target, then `average`. The pairs of `across_datasets` belong to no experiment and come last. Differences are
        positive if `first` is better.
    """
    tables = list(score_tables(runs_of(runs)))
    pairs = [comparisons(grid) for grid in tables]
    across = across_datasets(tables, pairs)
    rows = [row for of_table in pairs for row in of_table]
    return comparisons_frame([*rows, *(across.rows if across is not None else ())])


COMPARISONS = FrameSchema(
    "comparisons", "compare", COLUMNS, ("scope", "first", "second", "metric", "outcome"), (*_COUNTS, *_SIZES), compare
)


def comparisons_frame(rows: Iterable[PairedComparison]) -> pd.DataFrame:
    """The frame of some comparisons."""
    every = list(rows)
    frame = pd.DataFrame({name: [getattr(row, name) for row in every] for name in COLUMNS})
    return frame.astype(dict.fromkeys(_TEXTS, object) | dict.fromkeys(_COUNTS, int) | dict.fromkeys(_SIZES, float))


def main_rows(leaderboard: pd.DataFrame) -> pd.DataFrame:
    """The rows by which methods are ranked: the mean over targets, or the only target's."""
    several = leaderboard.groupby("experiment", observed=True)["target"].transform("nunique") > 1
    rows = leaderboard[(leaderboard["target"].astype(object) == AVERAGE) | ~several]
    return rows[~rows.duplicated(["experiment", "method"], keep="last")]  # if a target has the mean's name


def main_pairs(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The pairs by which methods are ranked: those of the mean over targets, or at the only target."""
    known = comparisons[comparisons["experiment"].notna()]
    scope = known["scope"].astype(object)
    several = (scope == AVERAGE).groupby(known["experiment"].astype(object)).transform("any")
    return known[(scope == AVERAGE) | (~several & (scope == "target"))]


def differ(comparisons: pd.DataFrame) -> pd.Series[bool]:
    """Whether one method of each pair is better."""
    return comparisons["outcome"].isin([BETTER, WORSE])


def testable(comparisons: pd.DataFrame) -> pd.Series[bool]:
    """Whether each comparison has enough pairs to show a difference, shown or not."""
    return differ(comparisons) | (comparisons["reason"] == NOT_SIGNIFICANT)


def with_baseline(comparisons: pd.DataFrame, baseline: str | None) -> pd.DataFrame:
    """The family of comparisons with a baseline; all comparisons if there is none."""
    return comparisons if baseline is None else comparisons[comparisons["family"] == f"against {baseline}"]


def conclusive(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The pairs at places where all pairs are compared, and any such test can show a difference.

    The column `place` is a target or `average`.
    """
    known = comparisons[comparisons["experiment"].notna() & (comparisons["family"] == ALL_PAIRS)]
    known = known.assign(place=known["target"].astype(object).where(known["target"].notna(), known["scope"]))
    able = testable(known).groupby([known["experiment"].astype(object), known["place"]])
    return known[able.transform("any") & known["p_holm"].notna()]


def best_of(rows: pd.DataFrame) -> str:
    """The method with the best mean, which leads in all of its pairs."""
    ahead = rows["first"].astype(object).where(rows["mean_difference"] > 0, rows["second"].astype(object))
    wins = ahead[rows["mean_difference"].fillna(0) != 0].value_counts()
    return str(rows["first"].iloc[0] if wins.empty else wins.index[0])


def relative_to(method: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The pairs with one method, turned so that outcomes and differences are those of the other method.

    Returns:
        `method` (the other one), `outcome` and `reason`, `difference, low, high` (mean and interval), `p` (after Holm's
        correction), `pairs` and `detectable`.
    """
    first, second = rows["first"].astype(object), rows["second"].astype(object)
    mine = (first == method) | (second == method)
    return turned_pairs(rows[mine], (first == method)[mine])


def turned_pairs(rows: pd.DataFrame, turned: pd.Series[bool]) -> pd.DataFrame:
    """Pairs with the second method as `method` where turned, otherwise with the first; see `relative_to`."""
    sign, outcome = 1 - 2 * turned.astype(int), rows["outcome"].astype(object)
    columns = ("mean_difference", "difference_low", "difference_high")
    difference, *ends = (sign * rows[name].astype(float) + 0.0 for name in columns)  # avoids -0.0
    return pd.DataFrame(
        {
            "method": rows["second"].astype(object).where(turned, rows["first"].astype(object)),
            "outcome": outcome.where(~turned, outcome.replace(OPPOSITE)),
            "reason": rows["reason"].astype(object),
            "difference": difference,
            "low": ends[0].where(~turned, ends[1]),
            "high": ends[1].where(~turned, ends[0]),
            "p": rows["p_holm"].astype(float),
            "pairs": rows["n_paired"].astype(float),
            "detectable": rows["detectable"].astype(float),
        }
    )
