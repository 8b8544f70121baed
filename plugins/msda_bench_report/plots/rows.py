"""The rows of leaderboards and comparisons that charts show, and pairs turned towards one method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msda_bench.results.decision import ALL_PAIRS, BETTER, NOT_SIGNIFICANT, OPPOSITE, WORSE
from msda_bench.results.frame import AVERAGE

_SIZES = ("p_holm", "mean_difference", "difference_low", "difference_high", "detectable", "n_paired")


def main_rows(leaderboard: pd.DataFrame) -> pd.DataFrame:
    """The rows by which methods are ranked: the mean over targets, or the only target's."""
    places = [*zip(*(leaderboard[name].tolist() for name in ("experiment", "target", "method")), strict=True)]
    targets: dict[str, set[str]] = {}
    for experiment, target, _ in places:
        targets.setdefault(experiment, set()).add(target)
    main: dict[tuple[str, str], int] = {}
    for place, (experiment, target, method) in enumerate(places):
        if target == AVERAGE or len(targets[experiment]) == 1:
            main[experiment, method] = place  # the last one, if a target has the mean's name
    return leaderboard.iloc[sorted(main.values())]


def main_pairs(comparisons: pd.DataFrame) -> pd.DataFrame:
    """The pairs by which methods are ranked: those of the mean over targets, or at the only target."""
    is_known = comparisons["experiment"].notna().tolist()
    places = [*zip(is_known, comparisons["experiment"].tolist(), comparisons["scope"].tolist(), strict=True)]
    averaged = {experiment for known, experiment, scope in places if known and scope == AVERAGE}
    main = [known and scope == (AVERAGE if experiment in averaged else "target") for known, experiment, scope in places]
    return comparisons[np.array(main, bool)]


def differ(comparisons: pd.DataFrame) -> pd.Series[bool]:
    """Whether one method of each pair is better."""
    return comparisons["outcome"].isin([BETTER, WORSE])


def testable(comparisons: pd.DataFrame) -> pd.Series[bool]:
    """Whether each comparison has enough pairs to show a difference, shown or not."""
    return differ(comparisons) | (comparisons["reason"] == NOT_SIGNIFICANT)


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
    is_first = np.array([name == method for name in rows["first"].tolist()], bool)
    is_second = np.array([name == method for name in rows["second"].tolist()], bool)
    mine = is_first | is_second
    return turned_pairs(rows[mine], is_first[mine])


def turned_pairs(rows: pd.DataFrame, turned: NDArray[np.bool_]) -> pd.DataFrame:
    """Pairs with the second method as `method` where turned, otherwise with the first; see `relative_to`."""
    texts = {name: rows[name].to_numpy(object) for name in ("first", "second", "outcome", "reason")}
    sizes = {name: rows[name].to_numpy(float, na_value=np.nan) for name in _SIZES}
    sign = np.where(turned, -1, 1)
    low, high = sign * sizes["difference_low"] + 0.0, sign * sizes["difference_high"] + 0.0  # avoids -0.0
    opposite = np.array([OPPOSITE.get(outcome, outcome) for outcome in texts["outcome"]], object)
    words = {
        "method": np.where(turned, texts["second"], texts["first"]),
        "outcome": np.where(turned, opposite, texts["outcome"]),
        "reason": texts["reason"],
    }
    columns: dict[str, Any] = {name: pd.Series(values, rows.index, object) for name, values in words.items()}
    columns |= {
        "difference": sign * sizes["mean_difference"] + 0.0,
        "low": np.where(turned, high, low),
        "high": np.where(turned, low, high),
        "p": sizes["p_holm"],
        "pairs": sizes["n_paired"],
        "detectable": sizes["detectable"],
    }
    return pd.DataFrame(columns, rows.index)
