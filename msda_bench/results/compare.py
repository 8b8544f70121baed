"""Compares every pair of methods over paired runs: at each target, on average, across targets and across datasets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from msda_bench.results.across import Across, across_datasets
from msda_bench.results.decision import Row, comparisons
from msda_bench.results.door import Kind
from msda_bench.results.frame import runs_of
from msda_bench.results.scores import grids

COLUMNS = (
    *("suite", "experiment", "dataset", "metric", "scope", "target", "first", "second", "outcome", "reason"),
    *("family", "n_family", "control", "alpha", "n_planned", "n_paired", "n_zero"),
    *("statistic", "p_one_sided", "p_two_sided", "p_holm", "p_bh", "attainable_p", "detectable"),
    *("mean_difference", "difference_low", "difference_high", "standard_deviation"),
    *("median_difference", "hodges_lehmann", "hl_low", "hl_high"),
    *("wins", "ties", "losses"),
)
"""The columns of comparisons.csv, explained in docs/results.md."""
MARGIN_COLUMNS = (
    *("p_corrected", "standing", "margin", "p_beyond", "p_beyond_corrected", "p_equivalent", "p_equivalent_corrected"),
    *("corrected_t_low", "corrected_t_high"),
)
"""Those that follow where a suite has a margin or primary methods."""


def comparison_columns(*, with_margin: bool) -> list[str]:
    """The columns of comparisons, of a suite that has a margin or primary methods, or neither."""
    return [*COLUMNS, *(MARGIN_COLUMNS if with_margin else ())]


def compare(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Compares all pairs of ranked methods by exact signed-rank tests.

    Args:
        runs: a result folder, a frame from `load_results`, or some of its rows, which are compared as if they were the
            whole plan.

    Returns:
        One row per pair, in the columns of comparisons.csv (docs/results.md): experiment by experiment, target by
        target, then `average`, then `across_targets`. The pairs of `across_datasets` belong to no experiment and come
        last. Differences are positive if `first` is better. Where a suite has a margin or primary methods, further
        columns follow.
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
    suite, tables = runs.attrs["plan"].suite, runs.attrs["plan"].experiments
    columns = comparison_columns(with_margin=any(table.margin is not None or table.primary for table in tables))
    frame = pd.DataFrame([{"suite": suite, **row} for row in every], columns=columns)
    frame.attrs = dict(runs.attrs)
    return frame
