"""Compares every pair of methods over paired runs; filters these comparisons, and turns them towards one method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from msda_bench.results.across import Across, across_datasets
from msda_bench.results.decision import BETTER, NOT_SIGNIFICANT, OPPOSITE, WORSE, Row, comparisons
from msda_bench.results.door import Kind
from msda_bench.results.frame import AVERAGE, runs_of
from msda_bench.results.runs import results_of
from msda_bench.results.scores import grids

COLUMNS = (
    *("suite", "experiment", "dataset", "metric", "scope", "target", "first", "second", "outcome", "reason"),
    *("family", "n_family", "control", "alpha", "n_planned", "n_paired", "n_zero"),
    *("statistic", "p_one_sided", "p_two_sided", "p_holm", "attainable_p", "detectable"),
    *("mean_difference", "difference_low", "difference_high", "standard_deviation"),
    *("median_difference", "hodges_lehmann", "hl_low", "hl_high"),
    *("wins", "ties", "losses"),
)
"""The columns of comparisons.csv, explained in docs/results.md."""


def compare(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Compares all pairs of ranked methods by exact signed-rank tests.

    Args:
        runs: a result folder, a frame from `load_results`, or some of its rows, which are compared as if they were the
            whole plan.

    Returns:
        One row per pair, in the columns of comparisons.csv (docs/results.md): experiment by experiment, target by
        target, then `average`, then `across_targets`. The pairs of `across_datasets` belong to no experiment and come
        last. Differences are positive if `first` is better.
    """
    runs = runs_of(runs)
    tables = list(grids(runs))
    pairs = [comparisons(grid) for grid in tables]
    return comparisons_frame(runs, pairs, across_datasets(tables, pairs))


_NUMBERS = ("n_family", "alpha", *COLUMNS[14:])
COMPARISONS = Kind(
    "comparisons", "compare", COLUMNS, ("scope", "first", "second", "metric", "outcome"), _NUMBERS, compare
)


def comparisons_frame(runs: pd.DataFrame, pairs: Sequence[Sequence[Row]], across: Across | None) -> pd.DataFrame:
    """The frame of the comparisons within each experiment and across datasets."""
    every = [row for of_table in pairs for row in of_table] + list(across.rows if across else ())
    suite = results_of(runs).plan.suite
    return pd.DataFrame([{"suite": suite, **row} for row in every], columns=COLUMNS)


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


def control_of(comparisons: pd.DataFrame) -> str | None:
    """The method with which the family that tables show compares the others; None for all pairs."""
    named = comparisons["control"].dropna()
    return str(named.iloc[0]) if len(named) else None


def shown_family(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The pairs of the family that tables show: those with the control if there is one, or else all."""
    return comparisons if control_of(comparisons) is None else comparisons[comparisons["control"].notna()]


def conclusive(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The pairs at places where tests of all pairs can show a difference, not only those with a control.

    The column `place` is a target, `average` or `across_targets`.
    """
    known = comparisons[comparisons["experiment"].notna()]
    known = known.assign(place=known["target"].astype(object).where(known["target"].notna(), known["scope"]))
    able = (testable(known) & known["control"].isna()).groupby([known["experiment"].astype(object), known["place"]])
    return known[able.transform("any") & known["p_holm"].notna()]


def best_of(rows: pd.DataFrame) -> str:
    """The method with the best mean, which leads in all of its pairs."""
    ahead = rows["first"].astype(object).where(rows["mean_difference"] > 0, rows["second"].astype(object))
    wins = ahead[rows["mean_difference"].fillna(0) != 0].value_counts()
    return str(rows["first"].iloc[0] if wins.empty else wins.index[0])


def against(rows: pd.DataFrame, to: str) -> pd.DataFrame:
    """The pairs with one method, turned so that outcomes and differences are those of the other method.

    Returns:
        `method` (the other one), `outcome` and `reason`, `difference, low, high` (mean and interval), `p` (after the
        correction), `pairs` and `detectable`.
    """
    first, second = rows["first"].astype(object), rows["second"].astype(object)
    mine = (first == to) | (second == to)
    return turned_pairs(rows[mine], (first == to)[mine])


def turned_pairs(rows: pd.DataFrame, turned: pd.Series[bool]) -> pd.DataFrame:
    """Pairs with the second method as `method` where turned, otherwise with the first; see `against`."""
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
