"""Decides each comparison of two methods, in one place: tables, charts and sentences only filter these rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import combinations
from typing import Any, Literal, TypeAlias

import numpy as np

from msda_bench.results.estimates import detectable_shift, margin_tests, mean_of, paired_effect
from msda_bench.results.scores import Column, Grid
from msda_bench.results.signed_rank import signed_rank_tests
from msda_bench.suite.plan import Experiment

Scope: TypeAlias = Literal["target", "average", "across_targets", "across_datasets"]
Row: TypeAlias = dict[str, Any]
"""A row of comparisons.csv by column."""
Adjust: TypeAlias = Callable[[Sequence[float]], list[float]]
"""A correction of the p-values of a family."""

BETTER, WORSE, SAME, UNKNOWN = "better", "worse", "same", "unknown"
INCOMPLETE, TOO_FEW, NOT_SIGNIFICANT = "incomplete", "too few pairs", "not significant"
TOO_SMALL = "too few test rows"
UNTESTED = frozenset({INCOMPLETE, TOO_FEW, TOO_SMALL})
"""The reasons for which no data of this size could have shown a difference."""
BETTER_BY_MORE, EQUIVALENT, UNDECIDED = "better by more than the margin", "equivalent", "undecided"
STANDINGS = (BETTER_BY_MORE, BETTER, EQUIVALENT, WORSE, UNDECIDED)
"""What a method is against the control where the suite has a margin: exactly one of these."""
OPPOSITE = {BETTER: WORSE, WORSE: BETTER}
"""The outcome of the second method against the first, where it differs."""
MIN_PAIRS_ACROSS = 6
"""The fewest targets or datasets to test across: a two-sided test of fewer pairs cannot reach 0.05."""
ALL_PAIRS = "all_pairs"
EXPLORATORY = "exploratory"
"""The first word of a family of methods that the suite does not name as primary."""
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
    return [about | row for rows in scopes for row in decided(rows, control, primary=experiment.primary)]


def _control(experiment: Experiment, ranked: Sequence[str]) -> str | None:
    """The method with which the others are compared: the suite's choice, or the baseline of many methods."""
    by_control = len(ranked) > MOST_ALL_PAIRS or experiment.margin is not None or experiment.primary
    name = experiment.against or (experiment.baseline if by_control else None)
    return name if name in ranked else None


def tested(experiment: Experiment) -> tuple[str, ...]:
    """The methods that are planned to be compared with the baseline: the primary ones if the suite names any."""
    ranked = (method.name for method in experiment.methods if not method.reference)
    return experiment.primary or tuple(name for name in ranked if name != experiment.baseline)


def tests_with_baseline(experiment: Experiment) -> int:
    """The size of the family that these comparisons belong to."""
    ranked = [method.name for method in experiment.methods if not method.reference]
    if _control(experiment, ranked) == experiment.baseline:
        return len(tested(experiment))
    return len(ranked) * (len(ranked) - 1) // 2


def _margin(grid: Grid, pair: tuple[str, str]) -> float | None:
    return grid.experiment.margin if _control(grid.experiment, grid.ranked) in pair else None


def _over_seeds(grid: Grid, column: Column, pair: tuple[str, str]) -> Row:
    merits, alpha = grid.merits[column], grid.experiment.alpha
    scope: Scope = "average" if column is None else "target"
    about: Row = {"alpha": alpha, "decimals": merits.decimals, "overlap": grid.overlap[column]}
    row = measured(scope, column, pair, merits.differences(*pair), len(grid.seeds), margin=_margin(grid, pair), **about)
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
    about: Row = {"alpha": alpha, "decimals": decimals, "margin": _margin(grid, pair)}
    return measured("across_targets", None, pair, means, n_planned, complete=complete, **about)


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
    margin: float | None = None,
) -> Row:
    """Measures a pair by its differences in merit; nothing is decided yet.

    For the tests and the counts, differences are rounded, once, to these `decimals`, so that exact ties and zeros stay
    so; sizes are rounded themselves. The interval allows for the `overlap` of the splits. `complete` tells whether no
    run is missing behind the differences. With a margin the differences are tested against it, too.
    """
    values, n = np.asarray(differences, float), len(differences)
    rounded = np.round(values, decimals)
    tests = signed_rank_tests(rounded)
    row: Row = {"scope": scope, "target": target, "first": pair[0], "second": pair[1], "alpha": alpha}
    row |= {"n_planned": n_planned, "n_paired": n, "n_zero": tests["greater"].n_zero}
    row["is_whole"] = complete and n >= n_planned
    if margin is not None:
        row["margin"] = margin
    if not n:
        return row
    if margin is not None:
        row |= margin_tests(rounded, margin, decimals)
    row |= paired_effect(values, alpha, decimals, overlap)
    signs = np.sign(rounded).tolist()
    row |= {"wins": signs.count(1), "ties": signs.count(0), "losses": signs.count(-1)}
    p_first, p_second = tests["greater"].p, tests["less"].p
    row |= {"statistic": tests["greater"].statistic, "p_two_sided": tests["two-sided"].p}
    return row | {"p_one_sided": p_second if row["mean_difference"] < 0 else p_first, "leads": p_first < p_second}


def decided(
    rows: Sequence[Row], control: str | None = None, family: str = ALL_PAIRS, primary: Collection[str] = ()
) -> list[Row]:
    """Decides the comparisons of one scope and target, each in its family.

    The pairs with the control are a family of their own, or two: of the `primary` methods, and of the others, which are
    exploratory; the other pairs belong to the family of all. Adds `outcome` (of the first method against the second),
    the `reason` of an unknown one, `family`, its size and control, and the corrected p-values; `attainable_p` is the
    smallest that the pairs could reach after the correction, `detectable` the smallest true difference that the test
    would find with probability 0.8. Comparisons with a margin get the `standing` of the method against the control.
    """
    every = _in_family(rows, family, None)
    against = [place for place, row in enumerate(rows) if control in {row["first"], row["second"]}]
    confirms = [place for place in against if not {rows[place]["first"], rows[place]["second"]}.isdisjoint(primary)]
    explores = [place for place in against if place not in confirms]
    families = ((f"primary against {control}", confirms), (f"{EXPLORATORY} against {control}", explores))
    for name, places in families if primary else ((f"against {control}", against),):
        for place, row in zip(places, _in_family([rows[place] for place in places], name, control), strict=True):
            every[place] = row
    return every


def _in_family(rows: Sequence[Row], family: str, control: str | None) -> list[Row]:
    """Decides rows that are a family: by Holm's correction, exploratory ones by Benjamini and Hochberg's."""
    p_values = [row.get("p_two_sided", 1.0) for row in rows]
    adjust = adjustment(family)
    attainable = adjust([min(1.0, 2 * 0.5 ** (row["n_paired"] - row["n_zero"])) for row in rows])
    decisions = []
    for row, p_holm, p_bh, smallest in zip(rows, holm(p_values), benjamini_hochberg(p_values), attainable, strict=True):
        about: Row = {"family": family, "n_family": len(rows), "control": control, "attainable_p": smallest}
        if row["n_paired"]:
            about |= {"p_holm": p_holm, "p_bh": p_bh, "p_corrected": p_holm if adjust is holm else p_bh}
        outcome, reason = _outcome(row, about.get("p_corrected", 1.0), smallest)
        if reason not in UNTESTED:
            about["detectable"] = _detectable(row, len(rows))
        decisions.append(row | about | {"outcome": outcome, "reason": reason})
    return with_standings(decisions, adjust) if control is not None else decisions


def adjustment(family: str) -> Adjust:
    """The correction that decides in a family."""
    return benjamini_hochberg if family.startswith(EXPLORATORY) else holm


def with_standings(rows: Sequence[Row], adjust: Adjust = holm) -> list[Row]:
    """Adds to the decided rows of a family that have a margin their p-values against it, corrected, and `standing`.

    A standing is of the method that is compared with the `control`, whichever of the two is first. It is "equivalent"
    also of a method that differs significantly by less than the margin: with enough pairs every small difference is
    significant, and the margin says which differences matter. `outcome` still tells that it differs.
    """
    names = ("p_beyond", "p_equivalent")
    corrected = [adjust([row.get(name, 1.0) for row in rows]) for name in names]
    decisions = []
    for row, *p_values in zip(rows, *corrected, strict=True):
        if row.get("margin") is None:
            decisions.append(row)
            continue
        about = {f"{name}_corrected": p for name, p in zip(names, p_values, strict=True) if name in row}
        ahead = row.get("leads") == (row["second"] == row["control"])
        decisions.append(row | about | {"standing": _standing(row, *p_values, ahead=ahead)})
    return decisions


def _standing(row: Row, p_beyond: float, p_equivalent: float, *, ahead: bool) -> str:
    if row.get("reason") == TOO_SMALL:
        return UNDECIDED
    if p_beyond <= row["alpha"] and ahead:
        return BETTER_BY_MORE
    if p_equivalent <= row["alpha"]:
        return EQUIVALENT
    if row["outcome"] not in OPPOSITE:
        return UNDECIDED
    return BETTER if ahead else WORSE


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
