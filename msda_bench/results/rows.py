"""Selects the main rows of the leaderboard and the comparisons, and turns pairs towards one method."""

from __future__ import annotations

from typing import Any

import pandas as pd

from msda_bench.results.frame import AVERAGE
from msda_bench.results.pairs import ALL_PAIRS

VERDICTS = (
    "significantly better",
    "significantly worse",
    "no significant difference",
    "too few pairs for a test",
)
"""How one method compares with another after Holm's correction."""


def main_rows(leaderboard: pd.DataFrame) -> pd.DataFrame:
    """The rows by which methods are ranked: the mean over targets, or the only target's."""
    several = leaderboard.groupby("experiment", observed=True)["target"].transform("nunique") > 1
    found = leaderboard[(leaderboard["target"].astype(object) == AVERAGE) | ~several]
    return found[~found.duplicated(["experiment", "method"], keep="last")]  # if a target has the mean's name


def main_pairs(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The pairs by which methods are ranked: those of the mean over targets, or at the only target."""
    known = comparisons[comparisons["experiment"].notna()]
    scope = known["scope"].astype(object)
    several = (scope == AVERAGE).groupby(known["experiment"].astype(object)).transform("any")
    return known[(scope == AVERAGE) | (~several & (scope == "target"))]


def with_control(rows: pd.DataFrame) -> pd.DataFrame:
    """The pairs with the control, corrected over these pairs alone; empty if there is no control."""
    own = rows[rows["p_holm_control"].notna()]
    significant = own["p_holm_control"] <= own["alpha"]
    known = {name: own[f"{name}_control"] for name in ("p_holm", "attainable_p_holm")}
    return own.assign(significant_holm=significant.astype("boolean"), **known)


def family_of(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """The pairs over which tests of a method are corrected: those with it if it is the suite's control, or else all."""
    is_control = (rows["family"] != ALL_PAIRS).all() and (rows["control"] == method).any()
    return with_control(rows) if is_control else rows


def best_of(rows: pd.DataFrame) -> str:
    """The method with the best mean, which is the better one in all of its pairs."""
    wins = rows["better"].astype(object).value_counts()
    return str(rows["first"].iloc[0] if wins.empty else wins.index[0])


def against(rows: pd.DataFrame, to: str) -> pd.DataFrame:
    """The pairs with one method, turned so that differences are positive if the other method is better.

    Returns:
        `method` (the other one), `difference, low, high` (Hodges-Lehmann estimate and interval), `p` (after Holm's
        correction), `pairs`, `significant` (NA if there are too few pairs for a test) and `verdict`.
    """
    first, second = rows["first"].astype(object), rows["second"].astype(object)
    return turned_pairs(rows[(first == to) | (second == to)], (first == to)[(first == to) | (second == to)])


def turned_pairs(own: pd.DataFrame, turned: pd.Series[bool]) -> pd.DataFrame:
    """Pairs with the second method as `method` where turned, otherwise with the first; see `against`."""
    sign = 1 - 2 * turned.astype(int)
    estimate, *ends = (sign * own[name].astype(float) for name in ("hodges_lehmann", "hl_low", "hl_high"))
    significant = own["significant_holm"].where(can_conclude(own))
    verdicts = zip(significant, estimate, strict=True)
    return pd.DataFrame(
        {
            "method": own["second"].astype(object).where(turned, own["first"].astype(object)),
            "difference": estimate,
            "low": ends[0].where(~turned, ends[1]),
            "high": ends[1].where(~turned, ends[0]),
            "p": own["p_holm"].astype(float),
            "pairs": own["n_paired"].astype(float),
            "significant": significant,
            "verdict": [_verdict(known, difference) for known, difference in verdicts],
        }
    )


def _verdict(significant: Any, difference: float) -> str:
    better, worse, same, unknown = VERDICTS
    if pd.isna(significant):
        return unknown
    return (better if difference > 0 else worse) if significant else same


def can_conclude(comparisons: pd.DataFrame) -> pd.Series[bool]:
    """Whether each comparison has enough pairs to be significant after Holm's correction."""
    enough = comparisons["attainable_p_holm"].astype(float) <= comparisons["alpha"].astype(float)
    return enough & comparisons["significant_holm"].notna()


def conclusive(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The pairs at places where any test can conclude; `place` is a target, `average` or `across_targets`."""
    known = comparisons[comparisons["experiment"].notna()]
    known = known.assign(place=known["target"].astype(object).where(known["target"].notna(), known["scope"]))
    of = [known["experiment"].astype(object), known["place"]]
    return known[can_conclude(known).groupby(of).transform("any") & known["p_holm"].notna()]
