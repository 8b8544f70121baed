"""Standardises differences between our means and published ones."""

from __future__ import annotations

from typing import Any, TypeAlias

import pandas as pd

FAR = 2.0
"""A rule of thumb: a difference of more standard errors is more than noise."""
Runs: TypeAlias = "int | pd.Series[Any]"


def standardised(
    difference: pd.Series[Any], n: pd.Series[Any], error: pd.Series[Any], published_error: pd.Series[Any], runs: Runs
) -> dict[str, pd.Series[Any]]:
    """Divides differences between the means of independent samples by their standard errors (Welch 1947).

    The variance of the difference is the sum of both squared standard errors, with the degrees of freedom of Welch and
    Satterthwaite. A single run of ours has no standard error, so the standard deviation of the published runs replaces
    it; the quotient then shows how well the run fits among them. A published mean without a spread is taken as exact:
    an error of 0 over infinitely many runs.

    Args:
        difference: ours - published.
        n: the number of our runs.
        error: our standard errors.
        published_error: the published standard errors.
        runs: the number of published runs.

    Returns:
        The columns `standardised_difference`, `degrees_of_freedom` and `within_2_se`.
    """
    n, own, theirs = n.astype(float), error.astype(float) ** 2, published_error.astype(float) ** 2
    one = n == 1
    variance = (own + theirs).mask(one, theirs * (runs + 1))
    df = (variance**2 / (own**2 / (n - 1) + theirs**2 / (runs - 1))).mask(one, runs - 1)
    z: pd.Series[Any] = difference.astype(float) / variance**0.5
    within = (z.abs() <= FAR).astype("boolean").mask(z.isna())
    return {"standardised_difference": z, "degrees_of_freedom": df, "within_2_se": within}
