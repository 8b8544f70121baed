"""Compares methods over paired runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from msda_bench.results.across import across_datasets
from msda_bench.results.argument_checks import FrameSchema
from msda_bench.results.decision import PairedComparison, comparisons
from msda_bench.results.frame import runs_of
from msda_bench.results.scores import score_tables

_TEXTS = ("experiment", "metric", "scope", "target", "first", "second", "outcome", "reason", "family")
_COUNTS = ("n_family", "n_planned", "n_paired")
_SIZES = ("p", "p_holm", "mean_difference", "difference_low", "difference_high", "detectable")
COLUMNS = (*_TEXTS, *_COUNTS, *_SIZES)
"""The columns of comparisons.csv, explained in docs/results.md."""


def compare(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Compares ranked methods by exact signed-rank tests: all pairs, or each with the baseline and with the best.

    Args:
        runs: a result folder, a frame from `load_results`, or some of its rows, which are compared as if they were the
            whole plan.

    Returns:
        One row per pair, in the columns of comparisons.csv (docs/results.md): experiment by experiment, target by
        target, then `average`. The pairs of `across_datasets` belong to no experiment and come last. Differences are
        positive if `first` is better.
    """
    tables = list(score_tables(runs_of(runs)))
    pairs = [comparisons(grid) for grid in tables]
    across = across_datasets(tables, pairs)
    rows = [row for of_table in pairs for row in of_table]
    return comparisons_frame([*rows, *(across.rows if across is not None else ())])


COMPARISONS = FrameSchema(
    "comparisons", "compare", COLUMNS, ("scope", "first", "second", "metric", "outcome"), (*_COUNTS, *_SIZES), compare
)


def comparisons_frame(rows: Iterable[PairedComparison]) -> pd.DataFrame:
    """The frame of some comparisons."""
    every = list(rows)
    frame = pd.DataFrame({name: [getattr(row, name) for row in every] for name in COLUMNS})
    return frame.astype(dict.fromkeys(_TEXTS, object) | dict.fromkeys(_COUNTS, int) | dict.fromkeys(_SIZES, float))
