"""Builds the leaderboard: a row for each experiment, target and method, the mean over targets included."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from msda_bench.results.across import Across, across_datasets
from msda_bench.results.argument_checks import FrameSchema
from msda_bench.results.compare import comparisons_frame
from msda_bench.results.decision import ALL_PAIRS, NOT_SIGNIFICANT, SAME, PairedComparison, best_method, comparisons
from msda_bench.results.estimates import summarize
from msda_bench.results.frame import AVERAGE, PROBLEMS, runs_of
from msda_bench.results.model_selection import select
from msda_bench.results.notes import Note, note_lines, notes
from msda_bench.results.runs import results_of, with_results
from msda_bench.results.scores import ScoreColumn, ScoreTable, is_shown, score_tables

COLUMNS = (
    *("suite", "experiment", "dataset", "task", "target", "method", "reference", "rank"),
    *("metric", "mean", "standard_error", "bold_paper", "bold_holm", "n_ok", "n_planned"),
    *(f"n_{problem}" for problem in PROBLEMS),
    *("recipe", "distributions", "notes"),
    *("mean_low", "mean_high"),
    *("baseline", "gain", "gain_standard_error", "gain_low", "gain_high", "negative_transfer", "headroom"),
    *("oracle", "regret", "regret_standard_error"),
)
"""The columns of leaderboard.csv, explained in docs/results.md."""
Row: TypeAlias = dict[str, Any]
"""A row of the leaderboard by column."""


def leaderboard(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Computes means, ranks, marks, intervals, gains and regrets.

    Args:
        runs: a result folder, a frame from `load_results`, or some of its rows, which are summarised as if they were
            the whole plan.

    Returns:
        One row for each experiment, target (`average` last) and method, in the plan's order, with the columns of
        leaderboard.csv (docs/results.md). Scores are in percent, or squared errors.
    """
    return analyse(runs_of(runs)).leaderboard


_TEXTS = ("experiment", "dataset", "task", "target", "method", "metric")
_FLAGS = ("bold_paper", "bold_holm", "negative_transfer", "headroom")
_NUMBERS = ("rank", "mean", "standard_error", "n_ok", "n_planned", "mean_low", "mean_high")
LEADERBOARD = FrameSchema("leaderboard", "leaderboard", COLUMNS, _TEXTS, _NUMBERS, leaderboard)


@dataclass(frozen=True)
class Analysis:
    """Everything that tables, page and site show of a frame of runs, each computed once."""

    runs: pd.DataFrame
    leaderboard: pd.DataFrame
    comparisons: pd.DataFrame
    across: Across | None
    notes: tuple[Note, ...]
    selected: pd.DataFrame
    """The runs with the selected settings."""
    grids: tuple[ScoreTable, ...]
    pairs: tuple[tuple[PairedComparison, ...], ...]
    """The decided comparisons of each of the grids."""


def analyse(runs: pd.DataFrame) -> Analysis:
    """Computes the leaderboard and the comparisons; the comparisons take most of the time."""
    selected = select(runs)
    tables = tuple(score_tables(selected))
    pairs = tuple(tuple(comparisons(grid)) for grid in tables)
    across = across_datasets(tables, pairs)
    rows = [row for grid, compared in zip(tables, pairs, strict=True) for row in _rows(grid, compared)]
    suite, noted = results_of(runs).plan.suite, tuple(notes(runs, selected))
    lines = note_lines(noted)
    frame = pd.DataFrame(
        [{"suite": suite, **row, "notes": "; ".join(lines.get(row["experiment"], ()))} for row in rows],
        columns=COLUMNS,
    )
    frame = frame.astype({"rank": "Int64"} | dict.fromkeys(_FLAGS, "boolean"))
    frame = with_results(frame, results_of(runs))
    every = [row for compared in pairs for row in compared]
    table_of_pairs = comparisons_frame([*every, *(across.rows if across is not None else ())])
    return Analysis(runs, frame, table_of_pairs, across, noted, selected, tables, pairs)


def _rows(grid: ScoreTable, pairs: Sequence[PairedComparison]) -> Iterator[Row]:
    experiment = grid.experiment
    recipes = {method.name: method for method in experiment.methods}
    about: Row = {"experiment": experiment.name, "dataset": experiment.dataset, "task": experiment.task}
    about |= {"metric": grid.metric, "n_planned": len(grid.seeds), "baseline": experiment.baseline}
    for column in grid.columns:
        compared = [row for row in pairs if row.target == column]
        marks, transfers = _marks(grid, column, compared), _transfers(grid, column, compared)
        for name in grid.methods:
            counts, recipe = grid.counts(name, column), recipes.get(name)
            yield {
                **about,
                "target": AVERAGE if column is None else column,
                "method": name,
                "reference": name in grid.references,
                **{f"n_{problem}": counts[problem] for problem in PROBLEMS},
                "recipe": recipe.recipe if recipe else None,
                "distributions": "; ".join(recipe.distributions) if recipe else None,
                **marks[name],
                **transfers[name],
            }


def _marks(grid: ScoreTable, column: ScoreColumn, pairs: Sequence[PairedComparison]) -> dict[str, Row]:
    merits, alpha = grid.merits[column], grid.experiment.alpha
    summaries = {name: summarize(by_seed.values()) for name, by_seed in merits.by_seed.items()}
    ends = {name: _ends(grid, of.allowing(grid.overlap[column]).interval(alpha)) for name, of in summaries.items()}
    means, best = merits.means(grid.ranked), best_method(grid, column)
    enough = [name for name in means if 0.5 ** summaries[name].n <= alpha]
    paper, by_holm = (_bold(best, enough, pairs, worse) for worse in (_worse_in_paper, _worse))
    return {
        name: {
            "rank": 1 + sum(other > means[name] for other in means.values()) if name in means else None,
            "mean": grid.sign * summary.mean,
            "standard_error": summary.standard_error,
            "mean_low": ends[name][0],
            "mean_high": ends[name][1],
            "n_ok": grid.counts(name, column, merits.by_seed[name])["ok"],
            "bold_paper": paper.get(name),
            "bold_holm": by_holm.get(name),
        }
        for name, summary in summaries.items()
    }


def _ends(grid: ScoreTable, interval: tuple[float, float]) -> tuple[float, float]:
    """Both ends of a mean's interval in the metric's own direction; of a percentage within 0 and 100."""
    low, high = sorted(grid.sign * end for end in interval)
    if grid.experiment.measure.percent:
        return max(low, 0.0), min(high, 100.0)
    return low, high


def _bold(
    best: str | None,
    enough: Sequence[str],
    pairs: Sequence[PairedComparison],
    worse: Callable[[PairedComparison], str | None],
) -> dict[str, bool | None]:
    """The best method by mean, and every method that is not worse; None if there are too few pairs to show it.

    Methods without `enough` seeds for any test get no mark. `worse` gives the worse method of a comparison, empty if
    none is, None if there are too few pairs for a test.
    """
    mine = [row for row in pairs if best in row.pair]
    # The test against the baseline alone does not show which methods are among the best.
    of_best = [row for row in mine if row.family in {ALL_PAIRS, f"against {best}"}]
    if best is None or all(worse(row) is None for row in of_best):
        return {}
    bold: dict[str, bool | None] = {best: True}
    for row in mine:
        name, answer = row.other(best), worse(row)
        if name not in enough:
            continue
        if row.outcome == SAME:
            bold[name] = True
        else:
            bold[name] = None if answer is None else answer != name
    return bold


def _worse(row: PairedComparison) -> str | None:
    return "" if row.reason == NOT_SIGNIFICANT else row.worse


def _worse_in_paper(row: PairedComparison) -> str | None:
    """Tests one-sided at alpha, without correction (Wen et al. 2020, table 1): a description, not a decision."""
    if 0.5**row.n_paired > row.alpha:
        return None
    difference = row.mean_difference or 0.0
    if not difference or row.p_one_sided > row.alpha:
        return ""
    return row.second if difference > 0 else row.first


def _gains(grid: ScoreTable, column: ScoreColumn, reference: str, baseline: str) -> bool:
    merits = grid.merits[column]
    gains = merits.differences(reference, baseline)
    return is_shown(gains, grid.experiment.alpha, grid.overlap[column], merits.decimals)


def _transfers(grid: ScoreTable, column: ScoreColumn, pairs: Sequence[PairedComparison]) -> dict[str, Row]:
    """Each method's gain over the baseline and regret to the oracle, over the seeds that both methods have.

    The oracle is the reference with the best mean. Transfer is negative if the method is worse than the baseline. A
    reference that gains shows headroom.
    """
    merits, baseline, overlap = grid.merits[column], grid.experiment.baseline, grid.overlap[column]
    baseline = baseline if baseline in grid.methods else None
    references = merits.means(name for name in grid.methods if name in grid.references)
    oracle = max(references, key=references.__getitem__, default=None)
    between = {} if baseline is None else {row.other(baseline): row for row in pairs if baseline in row.pair}
    transfers: dict[str, Row] = {}
    for name in grid.methods:
        ranked = name not in grid.references
        to = baseline if baseline != name else None
        gain = merits.gain(name, to) if to is not None else summarize(())
        low, high = gain.allowing(overlap).interval(grid.experiment.alpha)
        regret = merits.gain(oracle, name) if oracle is not None and ranked else summarize(())
        row = between.get(name)
        worse = None
        if row is not None:
            worse = "" if row.outcome == SAME else _worse(row)
        transfers[name] = {
            "gain": gain.mean,
            "gain_standard_error": gain.standard_error,
            "gain_low": low,
            "gain_high": high,
            "headroom": None if ranked or to is None or not gain.n else _gains(grid, column, name, to),
            "oracle": oracle,
            "regret": regret.mean,
            "regret_standard_error": regret.standard_error,
            "negative_transfer": None if worse is None else worse == name,
        }
    return transfers
