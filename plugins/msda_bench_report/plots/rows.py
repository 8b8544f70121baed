"""The rows of leaderboards and comparisons that charts show, and pairs turned towards one method."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msda_bench.results.decision import ALL_PAIRS, BETTER, NOT_SIGNIFICANT, OPPOSITE, WORSE
from msda_bench.results.frame import AVERAGE

_SIZES = ("p_holm", "mean_difference", "difference_low", "difference_high", "detectable", "n_paired")


def main_rows(leaderboard: pd.DataFrame) -> pd.DataFrame:
    """The rows by which methods are ranked: the mean over targets, or the only target's."""
    columns = [leaderboard[name].tolist() for name in ("experiment", "target", "method")]
    places = list(zip(*columns, strict=True))
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
    known = comparisons[comparisons["experiment"].notna()]
    places = list(zip(known["experiment"].tolist(), known["scope"].tolist(), strict=True))
    averaged = {experiment for experiment, scope in places if scope == AVERAGE}
    main = [(scope == AVERAGE) == (experiment in averaged) for experiment, scope in places]
    return known[np.array(main, bool)]


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
    place = known["target"].astype(object).fillna(known["scope"])
    able = testable(known).groupby([known["experiment"].astype(object), place]).transform("any")
    return known.assign(place=place)[able & known["p_holm"].notna()]


def best_of(rows: pd.DataFrame) -> str:
    """The method with the best mean, which leads in all of its pairs."""
    difference = rows["mean_difference"]
    ahead = rows["first"].astype(object).where(difference > 0, rows["second"].astype(object))
    wins = ahead[difference.fillna(0) != 0].value_counts()
    return str(rows["first"].iloc[0] if wins.empty else wins.index[0])


def relative_to(method: str, rows: pd.DataFrame) -> pd.DataFrame:
    """The pairs with one method, turned so that outcomes and differences are those of the other method.

    Returns:
        `method` (the other one), `outcome` and `reason`, `difference, low, high` (mean and interval), `p` (after Holm's
        correction), `pairs` and `detectable`.
    """
    is_first, is_second = ((rows[name] == method).to_numpy(dtype=bool) for name in ("first", "second"))
    mine = is_first | is_second
    return turned_pairs(rows[mine], is_first[mine])


def turned_pairs(rows: pd.DataFrame, turned: NDArray[np.bool_]) -> pd.DataFrame:
    """Pairs with the second method as `method` where turned, otherwise with the first; see `relative_to`."""
    words = rows[["first", "second", "outcome", "reason"]].astype(object)
    sizes = rows[[*_SIZES]].astype(float)
    sign = np.where(turned, -1, 1)
    low = sign * sizes["difference_low"] + 0.0  # avoids -0.0
    high = sign * sizes["difference_high"] + 0.0
    columns = {
        "method": words["second"].where(turned, words["first"]),
        "outcome": words["outcome"].map(lambda outcome: OPPOSITE.get(outcome, outcome)).where(turned, words["outcome"]),
        "reason": words["reason"],
        "difference": sign * sizes["mean_difference"] + 0.0,
        "low": high.where(turned, low),
        "high": low.where(turned, high),
        "p": sizes["p_holm"],
        "pairs": sizes["n_paired"],
        "detectable": sizes["detectable"],
    }
    return pd.DataFrame(columns, rows.index)
