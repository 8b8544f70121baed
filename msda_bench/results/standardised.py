"""Differences between our means and published ones, by their standard errors."""

from __future__ import annotations

from typing import Any, TypeAlias

import pandas as pd

FAR = 2.0
"""The number of standard errors beyond which a difference is more than noise, to guide a reader."""
Runs: TypeAlias = "int | pd.Series[Any]"


def standardised(
    difference: pd.Series[Any], n: pd.Series[Any], error: pd.Series[Any], published_error: pd.Series[Any], runs: Runs
) -> dict[str, pd.Series[Any]]:
    """Differences between means of two samples that share no run, by their standard errors (Welch 1947).

    The variance of the difference is the sum of both squared standard errors, with the degrees of freedom of Welch and
    Satterthwaite. A single run of ours has no standard error; then the published runs' standard deviation replaces
    ours, and the quotient shows how well the run fits among the published ones. `n` counts our runs, `runs` the
    published ones; a published mean without a spread is taken as exact, with an error of 0 over infinitely many runs.
    """
    n, own, theirs = n.astype(float), error.astype(float) ** 2, published_error.astype(float) ** 2
    one = n == 1
    variance = (own + theirs).mask(one, theirs * (runs + 1))
    df = (variance**2 / (own**2 / (n - 1) + theirs**2 / (runs - 1))).mask(one, runs - 1)
    z: pd.Series[Any] = difference.astype(float) / variance**0.5
    within = (z.abs() <= FAR).astype("boolean").mask(z.isna())
    return {"standardised_difference": z, "degrees_of_freedom": df, "within_2_se": within}
