"""The leaderboard: a row for each experiment, target and method, the mean over targets included."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial

import pandas as pd

from msda_bench.results.bootstrap import Draws, Resampled, interquartile_mean, over_targets, target_mean
from msda_bench.results.compare import compare_grid
from msda_bench.results.frame import AVERAGE, PROBLEMS
from msda_bench.results.notes import notes
from msda_bench.results.pairs import Row, enough_pairs
from msda_bench.results.scores import Column, Grid, Merits, grids
from msda_bench.results.signed_rank import signed_rank
from msda_bench.results.summary import Summary, summarize

COLUMNS = (
    *("suite", "experiment", "dataset", "task", "target", "method", "reference", "rank"),
    *("metric", "mean", "standard_error", "bold_paper", "bold_holm", "n_ok", "n_planned"),
    *(f"n_{problem}" for problem in PROBLEMS),
    *("recipe", "distributions", "notes"),
    *("mean_low", "mean_high", "iqm", "iqm_low", "iqm_high"),
    *("baseline", "gain", "gain_standard_error", "negative_transfer"),
    *("oracle", "regret", "regret_standard_error"),
)
"""The columns of leaderboard.csv, explained in docs/results.md."""


def leaderboard(runs: pd.DataFrame) -> pd.DataFrame:
    """Means, ranks, marks, intervals, gains and regrets.

    Args:
        runs: of `load_results`; a part of it is summed up as if it were all that was planned.

    Returns:
        One row for each experiment, target (`average` last) and method, in the plan's order and in the columns of
        leaderboard.csv (docs/results.md). Scores are in percent, or squared errors.
    """
    found = list(grids(runs))
    return leaderboard_frame(runs, found, [compare_grid(grid, Draws()) for grid in found])
