"""Decides each comparison of two methods, in one place: tables, charts and sentences only filter these rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np

from msda_bench.results.estimates import detectable_shift, mean_of, paired_effect
from msda_bench.results.scores import Column, Grid
from msda_bench.results.signed_rank import signed_rank_tests

Scope: TypeAlias = Literal["target", "average", "across_targets", "across_datasets"]
Row: TypeAlias = dict[str, Any]
"""A row of comparisons.csv by column."""

BETTER, WORSE, SAME, UNKNOWN = "better", "worse", "same", "unknown"
INCOMPLETE, TOO_FEW, NOT_SIGNIFICANT = "incomplete", "too few pairs", "not significant"
OPPOSITE = {BETTER: WORSE, WORSE: BETTER}
"""The outcome of the second method against the first, where it differs."""
MIN_PAIRS_ACROSS = 6
"""The fewest targets or datasets to test across: a two-sided test of fewer pairs cannot reach 0.05."""
ALL_PAIRS = "all_pairs"
MOST_ALL_PAIRS = 6
"""Up to this many ranked methods, a family holds all pairs; beyond, each method against the control."""


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusts p-values for the family-wise error rate: rejecting those at most alpha keeps it at most alpha.

    The j-th smallest of m becomes the running maximum of (m - j + 1) p_(j), capped at 1 (Holm 1979).
    """
    p, order, m = np.asarray(p_values, float), np.argsort(p_values, kind="stable"), len(p_values)
    adjusted = np.empty(m)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, np.arange(m, 0, -1) * p[order]))
    return [*map(float, adjusted)]


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusts p-values for the false discovery rate: rejecting those at most alpha keeps it at most alpha.

    The j-th smallest of m becomes the least of m / i p_(i) over i >= j, capped at 1 (Benjamini and Hochberg 1995).
    Equals scipy's `false_discovery_control`, which takes half a second to import.
    """
    p, falling, m = np.asarray(p_values, float), np.argsort(p_values, kind="stable")[::-1], len(p_values)
    adjusted = np.empty(m)
    adjusted[falling] = np.minimum.accumulate(np.minimum(1.0, m / np.arange(m, 0, -1) * p[falling]))
    return [*map(float, adjusted)]


def comparisons(grid: Grid) -> list[Row]:
    """The decided comparisons of an experiment: every pair at each target, on average, then across targets."""
    experiment, pairs = grid.experiment, list(combinations(grid.ranked, 2))
    scopes = [[_over_seeds(grid, column, pair) for pair in pairs] for column in grid.columns]
    scopes.append([_across_targets(grid, pair) for pair in pairs])
    about = {"experiment": experiment.name, "dataset": experiment.dataset, "metric": grid.metric}
    return [about | row for rows in scopes for row in decided(rows, _control(grid))]


def _control(grid: Grid) -> str | None:
    """The method with which the others are compared: the suite's choice, or the baseline of many methods."""
    many = len(grid.ranked) > MOST_ALL_PAIRS
    name = grid.experiment.against or (grid.experiment.baseline if many else None)
    return name if name in grid.ranked else None


def _over_seeds(grid: Grid, column: Column, pair: tuple[str, str]) -> Row:
    merits, alpha = grid.merits[column], grid.experiment.alpha
    scope: Scope = "average" if column is None else "target"
    differences = merits.differences(*pair)
    return measured(scope, column, pair, differences, len(grid.seeds), alpha=alpha, decimals=merits.decimals)


def _across_targets(grid: Grid, pair: tuple[str, str]) -> Row:
    means, complete = [], True
    for target in grid.targets:
        merits = grid.merits[target]
        first, second = merits.paired(*pair)
        complete &= len(first) == len(grid.seeds)
        if first:
            means.append(mean_of(first) - mean_of(second))
    n_planned, alpha, decimals = len(grid.targets), grid.experiment.alpha, grid.merits[None].decimals
    return measured("across_targets", None, pair, means, n_planned, alpha=alpha, decimals=decimals, complete=complete)


def measured(
    scope: Scope,
    target: str | None,
    pair: tuple[str, str],
    differences: Sequence[float],
    n_planned: int,
    *,
    alpha: float,
    decimals: int,
    complete: bool = True,
) -> Row:
    """Measures a pair by its differences in merit; nothing is decided yet.

    For the test and the counts, differences are rounded, once, to these `decimals`, so that exact ties and zeros stay
    so; sizes are rounded themselves. `complete` tells whether no run is missing behind the differences.
    """
    values, n = np.asarray(differences, float), len(differences)
    rounded = np.round(values, decimals)
    tests = signed_rank_tests(rounded)
    row: Row = {"scope": scope, "target": target, "first": pair[0], "second": pair[1], "alpha": alpha}
    row |= {"n_planned": n_planned, "n_paired": n, "n_zero": tests["greater"].n_zero}
    row["is_whole"] = complete and n >= n_planned
    if not n:
        return row
    row |= paired_effect(values, alpha, decimals)
    signs = np.sign(rounded).tolist()
    row |= {"wins": signs.count(1), "ties": signs.count(0), "losses": signs.count(-1)}
    p_first, p_second = tests["greater"].p, tests["less"].p
    row |= {"statistic": tests["greater"].statistic, "p_two_sided": tests["two-sided"].p}
    return row | {"p_one_sided": p_second if row["mean_difference"] < 0 else p_first, "leads": p_first < p_second}


def decided(rows: Sequence[Row], control: str | None = None, family: str = ALL_PAIRS) -> list[Row]:
    """Decides the comparisons of one scope and target, each in its family.

    The pairs with the control are a family of their own; the other pairs belong to the family of all. Adds `outcome`
    (of the first method against the second), the `reason` of an unknown one, `family`, its size and control, and the
    corrected p-values; `attainable_p` is the smallest that the pairs could reach after Holm's correction, `detectable`
    the smallest true difference that the test would find with probability 0.8.
    """
    with_control = [control in {row["first"], row["second"]} for row in rows]
    mine = [row for row, is_mine in zip(rows, with_control, strict=True) if is_mine]
    against = _in_family(mine, f"against {control}", control)
    every = _in_family(rows, family, None)
    return [next(against) if is_mine else row for row, is_mine in zip(every, with_control, strict=True)]


def _in_family(rows: Sequence[Row], family: str, control: str | None) -> Iterator[Row]:
    p_values = [row.get("p_two_sided", 1.0) for row in rows]
    attainable = holm([min(1.0, 2 * 0.5 ** (row["n_paired"] - row["n_zero"])) for row in rows])
    corrected = zip(rows, holm(p_values), benjamini_hochberg(p_values), attainable, strict=True)
    for row, p_holm, p_bh, smallest in corrected:
        about = {"family": family, "n_family": len(rows), "control": control, "attainable_p": smallest}
        if row["n_paired"]:
            about |= {"p_holm": p_holm, "p_bh": p_bh}
        outcome, reason = _outcome(row, p_holm, smallest)
        if reason not in {INCOMPLETE, TOO_FEW}:
            about["detectable"] = _detectable(row, len(rows))
        yield row | about | {"outcome": outcome, "reason": reason}


def _outcome(row: Row, p_holm: float, attainable: float) -> tuple[str, str | None]:
    """The outcome of the first method against the second, and why it is unknown."""
    n, alpha = row["n_paired"], row["alpha"]
    if 0 < n == row["n_zero"]:
        return SAME, None
    across = row["scope"] in {"across_targets", "across_datasets"}
    if attainable > alpha or (across and n < MIN_PAIRS_ACROSS):
        return UNKNOWN, TOO_FEW if row["is_whole"] else INCOMPLETE
    if p_holm > alpha:
        return UNKNOWN, NOT_SIGNIFICANT
    return BETTER if row["leads"] else WORSE, None


def _detectable(row: Row, tests: int) -> float | None:
    shift = detectable_shift(row["n_paired"], row["alpha"] / tests)
    return shift * row["standard_deviation"] if shift is not None and row["standard_deviation"] else None
