"""Compares every pair of methods over paired runs: at each target, on average, across targets and across datasets."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import pandas as pd

from msda_bench.results.across import Across, across_datasets
from msda_bench.results.bootstrap import Draws, Estimate, Resampled, Rival, over_targets
from msda_bench.results.pairs import ALL_PAIRS, MOST_ALL_PAIRS, Row, adjusted, compared
from msda_bench.results.scores import Column, Grid, grids

COLUMNS = (
    *("suite", "experiment", "dataset", "scope", "target", "first", "second", "better", "status"),
    *("n_planned", "n_paired", "n_zero", "statistic", "p_one_sided", "p_two_sided", "p_holm"),
    *("attainable_p", "attainable_p_holm", "significant_holm", "alpha", "metric", "mean_difference"),
    *("median_difference", "hodges_lehmann", "hl_low", "hl_high", "wins", "ties", "losses"),
    *("p_bh", "improvement", "improvement_low", "improvement_high"),
    *("control", "p_holm_control", "attainable_p_holm_control", "family", "significant"),
)
"""The columns of comparisons.csv, explained in docs/results.md."""


def compare(runs: pd.DataFrame) -> pd.DataFrame:
    """Compares all pairs of ranked methods by exact signed-rank tests.

    Args:
        runs: a frame from `load_results`, or some of its rows, which are compared as if they were the whole plan.

    Returns:
        One row per pair, in the columns of comparisons.csv (docs/results.md): experiment by experiment, target by
        target, then `average`, then `across_targets`. The pairs of `across_datasets` belong to no experiment and come
        last. Differences are positive if `first` is better.
    """
    found, draws = list(grids(runs)), Draws()
    return comparisons_frame(runs, [compare_grid(grid, draws) for grid in found], across_datasets(found))


def comparisons_frame(runs: pd.DataFrame, pairs: Sequence[Sequence[Row]], across: Across | None) -> pd.DataFrame:
    """The frame of the comparisons within each experiment and across datasets."""
    every = [row for own in pairs for row in own] + list(across.rows if across else ())
    suite = runs.attrs["plan"].suite
    frame = pd.DataFrame([{"suite": suite, **row} for row in every], columns=COLUMNS)
    frame = frame.astype(dict.fromkeys(("significant_holm", "significant"), "boolean"))
    frame.attrs = dict(runs.attrs)
    return frame


def control_of(grid: Grid) -> str | None:
    """The method with which the others are compared: the suite's choice or the baseline; None if it is not ranked."""
    named = grid.experiment.against or grid.experiment.baseline
    return named if named in grid.ranked else None


def family_of(grid: Grid) -> str:
    """The family of tests that tables use: `all_pairs`, or `against NAME`."""
    control = control_of(grid)
    many = len(grid.ranked) > MOST_ALL_PAIRS or grid.experiment.against is not None
    return f"against {control}" if control is not None and many else ALL_PAIRS


def compare_grid(grid: Grid, draws: Draws) -> list[Row]:
    """The comparisons of one experiment."""
    experiment, pairs = grid.experiment, list(combinations(grid.ranked, 2))
    improvements = _improvements(grid, draws)
    about = {"experiment": experiment.name, "dataset": experiment.dataset, "metric": grid.metric}
    families = [
        [_over_seeds(grid, column, pair, improvements[pair, column]) for pair in pairs] for column in grid.columns
    ]
    families.append([_across_targets(grid, pair) for pair in pairs])
    control, family = control_of(grid), family_of(grid)
    return [about | row for rows in families for row in adjusted(rows, experiment.alpha, control, family)]


def _improvements(grid: Grid, draws: Draws) -> dict[tuple[tuple[str, str], Column], Estimate | None]:
    """Probabilities of improvement by pair and column."""
    alpha = grid.experiment.alpha
    found: dict[tuple[tuple[str, str], Column], Estimate | None] = {}
    for place, second in enumerate(grid.ranked):  # the outer loop, since its sorted runs serve all first methods
        rivals: dict[tuple[str, tuple[int, ...]], Rival] = {}
        for first in grid.ranked[:place]:
            shares: list[Resampled | None] = []
            for target in grid.targets:
                ours, theirs = grid.merits[target].paired(first, second)
                # If runs are missing, pairs differ in their seeds.
                known = (target, tuple(theirs))
                if known not in rivals:
                    rivals[known] = Rival(theirs, target, draws)
                shares.append(rivals[known].wins(ours))
                found[(first, second), target] = _over_all(shares[-1:], alpha)
            found[(first, second), None] = _over_all(shares, alpha)
    return found


def _over_all(shares: Sequence[Resampled | None], alpha: float) -> Estimate | None:
    known = [one for one in shares if one is not None]
    return over_targets(known, alpha) if len(known) == len(shares) > 0 else None


def _over_seeds(grid: Grid, column: Column, pair: tuple[str, str], improvement: Estimate | None) -> Row:
    merits, alpha, n_planned = grid.merits[column], grid.experiment.alpha, len(grid.seeds)
    differences = merits.differences(*pair)
    row = compared(
        "average" if column is None else "target",
        column,
        pair,
        differences,
        n_planned,
        complete=len(differences) == n_planned,
        alpha=alpha,
        unit=merits.unit,
    )
    names = ("improvement", "improvement_low", "improvement_high")
    return row | dict(zip(names, improvement, strict=True)) if improvement else row


def _across_targets(grid: Grid, pair: tuple[str, str]) -> Row:
    means, complete = [], True
    for target in grid.targets:
        merits = grid.merits[target]
        differences = merits.differences(*pair)
        complete &= len(differences) == len(grid.seeds)
        if differences:
            means.append(merits.unit * Fraction(sum(differences), len(differences)))
    n_planned = len(grid.targets)
    return compared("across_targets", None, pair, means, n_planned, complete=complete, alpha=grid.experiment.alpha)
