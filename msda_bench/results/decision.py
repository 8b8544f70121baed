"""Decides each comparison of two methods, in one place: tables, charts and sentences only filter these rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np

from msda_bench.results.estimates import detectable_shift, mean_of, paired_effect
from msda_bench.results.scores import Column, Grid
from msda_bench.results.signed_rank import signed_rank_tests
from msda_bench.suite.plan import Experiment

Scope: TypeAlias = Literal["target", "average", "across_targets", "across_datasets"]
Row: TypeAlias = dict[str, Any]
"""A row of comparisons.csv by column."""

BETTER, WORSE, SAME, UNKNOWN = "better", "worse", "same", "unknown"
INCOMPLETE, TOO_FEW, NOT_SIGNIFICANT = "incomplete", "too few pairs", "not significant"
TOO_SMALL = "too few test rows"
UNTESTED = frozenset({INCOMPLETE, TOO_FEW, TOO_SMALL})
"""The reasons for which no data of this size could have shown a difference."""
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


def comparisons(grid: Grid, *, whole: bool = True) -> list[Row]:
    """The decided comparisons of an experiment: every pair at each target, on average, then across targets.

    Without `whole` those on average alone, which are the same, since each scope is a family of its own.
    """
    experiment, pairs = grid.experiment, list(combinations(grid.ranked, 2))
    columns: Sequence[Column] = grid.columns if whole else (None,)
    scopes = [[_over_seeds(grid, column, pair) for pair in pairs] for column in columns]
    if whole:
        scopes.append([_across_targets(grid, pair) for pair in pairs])
    about = {"experiment": experiment.name, "dataset": experiment.dataset, "metric": grid.metric}
    control = _control(experiment, grid.ranked)
    return [about | row for rows in scopes for row in decided(rows, control)]


def _control(experiment: Experiment, ranked: Sequence[str]) -> str | None:
    """The method with which the others are compared, as the suite says, or since they are many: the baseline."""
    by_baseline = len(ranked) > MOST_ALL_PAIRS if experiment.pairs is None else experiment.pairs == "baseline"
    return experiment.baseline if by_baseline and experiment.baseline in ranked else None


def tests_with_baseline(experiment: Experiment) -> int:
    """The size of the family that the comparisons with the baseline belong to."""
    ranked = [method.name for method in experiment.methods if not method.reference]
    if _control(experiment, ranked) is not None:
        return len(ranked) - 1
    return len(ranked) * (len(ranked) - 1) // 2


def _over_seeds(grid: Grid, column: Column, pair: tuple[str, str]) -> Row:
    merits, alpha = grid.merits[column], grid.experiment.alpha
    scope: Scope = "average" if column is None else "target"
    about: Row = {"alpha": alpha, "decimals": merits.decimals, "overlap": grid.overlap[column]}
    row = measured(scope, column, pair, merits.differences(*pair), len(grid.seeds), **about)
    return row | {"is_small": grid.is_small(column)}


def _across_targets(grid: Grid, pair: tuple[str, str]) -> Row:
    means, complete = [], True
    for target in grid.averaged:
        merits = grid.merits[target]
        first, second = merits.paired(*pair)
        complete &= len(first) == len(grid.seeds)
        if first:
            means.append(mean_of(first) - mean_of(second))
    n_planned, alpha, decimals = len(grid.averaged), grid.experiment.alpha, grid.merits[None].decimals
    about: Row = {"alpha": alpha, "decimals": decimals, "complete": complete}
    return measured("across_targets", None, pair, means, n_planned, **about)


def measured(
    scope: Scope,
    target: str | None,
    pair: tuple[str, str],
    differences: Sequence[float],
    n_planned: int,
    *,
    alpha: float,
    decimals: int,
    overlap: float = 0.0,
    complete: bool = True,
) -> Row:
    """Measures a pair by its differences in merit; nothing is decided yet.

    For the tests and the counts, differences are rounded, once, to these `decimals`, so that exact ties and zeros stay
    so; sizes are rounded themselves. The interval allows for the `overlap` of the splits. `complete` tells whether no
    run is missing behind the differences.
    """
    values, n = np.asarray(differences, float), len(differences)
    rounded = np.round(values, decimals)
    tests = signed_rank_tests(rounded)
    row: Row = {"scope": scope, "target": target, "first": pair[0], "second": pair[1], "alpha": alpha}
    row |= {"n_planned": n_planned, "n_paired": n, "n_zero": tests["greater"].n_zero}
    row["is_whole"] = complete and n >= n_planned
    if not n:
        return row
    row |= paired_effect(values, alpha, decimals, overlap)
    signs = np.sign(rounded).tolist()
    row |= {"wins": signs.count(1), "ties": signs.count(0), "losses": signs.count(-1)}
    p_first, p_second = tests["greater"].p, tests["less"].p
    row |= {"statistic": tests["greater"].statistic, "p_two_sided": tests["two-sided"].p}
    return row | {"p_one_sided": p_second if row["mean_difference"] < 0 else p_first, "leads": p_first < p_second}


def decided(rows: Sequence[Row], control: str | None = None, family: str = ALL_PAIRS) -> list[Row]:
    """Decides the comparisons of one scope and target, each in its family.

    The pairs with the control are a family of their own; the other pairs belong to the family of all. Adds `outcome`
    (of the first method against the second), the `reason` of an unknown one, `family`, its size and control, and the
    p-value after Holm's correction; `attainable_p` is the smallest that the pairs could reach after it, `detectable`
    the smallest true difference that the test would find with probability 0.8.
    """
    every = _in_family(rows, family, None)
    places = [place for place, row in enumerate(rows) if control in {row["first"], row["second"]}]
    against = _in_family([rows[place] for place in places], f"against {control}", control)
    for place, row in zip(places, against, strict=True):
        every[place] = row
    return every


def _in_family(rows: Sequence[Row], family: str, control: str | None) -> list[Row]:
    """Decides rows that are a family."""
    corrected = holm([row.get("p_two_sided", 1.0) for row in rows])
    attainable = holm([min(1.0, 2 * 0.5 ** (row["n_paired"] - row["n_zero"])) for row in rows])
    decisions = []
    for row, p, smallest in zip(rows, corrected, attainable, strict=True):
        about: Row = {"family": family, "n_family": len(rows), "control": control, "attainable_p": smallest}
        if row["n_paired"]:
            about["p_holm"] = p
        outcome, reason = _outcome(row, p, smallest)
        if reason not in UNTESTED:
            about["detectable"] = _detectable(row, len(rows))
        decisions.append(row | about | {"outcome": outcome, "reason": reason})
    return decisions


def _outcome(row: Row, p_corrected: float, attainable: float) -> tuple[str, str | None]:
    """The outcome of the first method against the second, and why it is unknown."""
    n, alpha = row["n_paired"], row["alpha"]
    if row.get("is_small"):
        return UNKNOWN, TOO_SMALL
    if 0 < n == row["n_zero"]:
        return SAME, None
    across = row["scope"] in {"across_targets", "across_datasets"}
    if attainable > alpha or (across and n < MIN_PAIRS_ACROSS):
        return UNKNOWN, TOO_FEW if row["is_whole"] else INCOMPLETE
    if p_corrected > alpha:
        return UNKNOWN, NOT_SIGNIFICANT
    return BETTER if row["leads"] else WORSE, None


def _detectable(row: Row, tests: int) -> float | None:
    shift = detectable_shift(row["n_paired"], row["alpha"] / tests)
    return shift * row["standard_deviation"] if shift is not None and row["standard_deviation"] else None
