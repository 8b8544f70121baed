"""Builds the leaderboard: a row for each experiment, target and method, the mean over targets included."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from msda_bench.results.runs import Results, results_of, with_results
from msda_bench.results.scores import STATUSES, ScoreColumn, ScoreTable, is_shown, score_tables

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
    """Everything that tables, page and site show of a frame of runs, each computed once.

    Attributes:
        runs: the runs.
        selected: those with the selected settings.
        tables: the scores of each experiment.
        rows: the rows of the leaderboard of each of these tables, targets first, then their mean.
        pairs: the decided comparisons of each of these tables.
        across: the comparison across datasets, if there are several.
        notes: the notes on all experiments.
        leaderboard: all rows as a frame.
    """

    runs: pd.DataFrame
    selected: pd.DataFrame
    tables: tuple[ScoreTable, ...]
    rows: tuple[tuple[Row, ...], ...]
    pairs: tuple[tuple[PairedComparison, ...], ...]
    across: Across | None
    notes: tuple[Note, ...]
    leaderboard: pd.DataFrame

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """All comparisons as a frame, those across datasets last."""
        every = [comparison for of_table in self.pairs for comparison in of_table]
        if self.across is not None:
            every += self.across.rows
        return comparisons_frame(every)


def analyse(runs: pd.DataFrame) -> Analysis:
    """Computes the scores, the comparisons and the leaderboard."""
    selected = select(runs)
    tables = tuple(score_tables(selected))
    pairs = tuple(tuple(comparisons(table)) for table in tables)
    noted = tuple(notes(runs, selected, tables))
    lines = note_lines(noted)
    suite = results_of(runs).plan.suite
    rows = []
    for table, compared in zip(tables, pairs, strict=True):
        about = {"suite": suite, "notes": "; ".join(lines.get(table.experiment.name, ()))}
        rows.append(tuple(_rows(table, compared, about)))
    return Analysis(
        runs=runs,
        selected=selected,
        tables=tables,
        rows=tuple(rows),
        pairs=pairs,
        across=across_datasets(tables, pairs),
        notes=noted,
        leaderboard=_frame(rows, results_of(runs)),
    )


def _frame(rows: Iterable[Iterable[Row]], results: Results) -> pd.DataFrame:
    every = [row for of_table in rows for row in of_table]
    frame = pd.DataFrame({name: [row[name] for row in every] for name in COLUMNS}, columns=COLUMNS)
    frame = frame.astype({"rank": "Int64"} | dict.fromkeys(_FLAGS, "boolean"))
    return with_results(frame, results)


def _rows(table: ScoreTable, pairs: Sequence[PairedComparison], about: Row) -> Iterator[Row]:
    """The rows of one experiment; `about` are the values that all of them share."""
    experiment = table.experiment
    recipes = {method.name: method.recipe for method in experiment.methods}
    distributions = {method.name: "; ".join(method.distributions) for method in experiment.methods}
    for column in table.columns:
        compared = [pair for pair in pairs if pair.target == column]
        marks = _marks(table, column, compared)
        transfers = _transfers(table, column, compared)
        counts = table.counts[:, table.place(column)].tolist()
        for name, of_method in zip(table.methods, counts, strict=True):
            row = about | {
                "experiment": experiment.name,
                "dataset": experiment.dataset,
                "task": experiment.task,
                "target": AVERAGE if column is None else column,
                "method": name,
                "reference": name in table.references,
                "metric": table.metric,
                "n_planned": len(table.seeds),
                "recipe": recipes.get(name),
                "distributions": distributions.get(name),
                "baseline": experiment.baseline,
            }
            for status, count in zip(STATUSES, of_method, strict=True):
                row[f"n_{status}"] = count
            yield row | marks[name] | transfers[name]


def ranked_rows(rows: Iterable[Row]) -> list[Row]:
    """The rows of methods that have a rank."""
    return [row for row in rows if row["rank"] is not None]


def by_rank(rows: Iterable[Row]) -> list[Row]:
    """The rows of methods that have a rank, the best first."""
    return sorted(ranked_rows(rows), key=lambda row: int(row["rank"]))


def without_nan(row: Row) -> Row:
    """A row with None where a number is not known."""
    plain = {}
    for name, value in row.items():
        is_unknown = isinstance(value, float) and math.isnan(value)
        plain[name] = None if is_unknown else value
    return plain


def rows_of_mean(table: ScoreTable, rows: Sequence[Row]) -> Sequence[Row]:
    """The rows by which methods are ranked: those of the mean over targets, the last ones."""
    return rows[-len(table.methods) :]


def _marks(table: ScoreTable, column: ScoreColumn, pairs: Sequence[PairedComparison]) -> dict[str, Row]:
    """Each method's mean with its interval, its rank, and its marks."""
    alpha = table.experiment.alpha
    means = table.means(table.ranked, column)
    best = best_method(table, column)
    summaries = {name: summarize(table.known(name, column)) for name in table.methods}
    enough = [name for name in means if 0.5 ** summaries[name].n <= alpha]
    in_paper = _bold(best, enough, pairs, _worse_in_paper)
    by_holm = _bold(best, enough, pairs, _worse)
    n_ok = table.n_scored[:, table.place(column)].tolist()
    marks: dict[str, Row] = {}
    for name, count in zip(table.methods, n_ok, strict=True):
        summary = summaries[name]
        low, high = _ends(table, summary.allowing(table.overlap(column)).interval(alpha))
        rank = None
        if name in means:
            rank = 1 + sum(other > means[name] for other in means.values())
        marks[name] = {
            "rank": rank,
            "mean": table.sign * summary.mean,
            "standard_error": summary.standard_error,
            "mean_low": low,
            "mean_high": high,
            "n_ok": count,
            "bold_paper": in_paper.get(name),
            "bold_holm": by_holm.get(name),
        }
    return marks


def _ends(table: ScoreTable, interval: tuple[float, float]) -> tuple[float, float]:
    """Both ends of a mean's interval in the metric's own direction; of a percentage within 0 and 100."""
    low, high = sorted(table.sign * end for end in interval)
    if table.experiment.measure.percent:
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
    if best is None:
        return {}
    mine = [row for row in pairs if best in row.pair]
    # The test against the baseline alone does not show which methods are among the best.
    of_best = [row for row in mine if row.family in {ALL_PAIRS, f"against {best}"}]
    if all(worse(row) is None for row in of_best):
        return {}
    bold: dict[str, bool | None] = {best: True}
    for row in mine:
        name = row.other(best)
        if name not in enough:
            continue
        answer = worse(row)
        if row.outcome == SAME:
            bold[name] = True
        elif answer is None:
            bold[name] = None
        else:
            bold[name] = answer != name
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


def _transfers(table: ScoreTable, column: ScoreColumn, pairs: Sequence[PairedComparison]) -> dict[str, Row]:
    """Each method's gain over the baseline and regret to the oracle, over the seeds that both methods have.

    The oracle is the reference with the best mean. Transfer is negative if the method is worse than the baseline. A
    reference that gains shows headroom.
    """
    baseline = table.experiment.baseline
    if baseline not in table.methods:
        baseline = None
    references = table.means([name for name in table.methods if name in table.references], column)
    oracle = max(references, key=references.__getitem__, default=None)
    between = {pair.other(baseline): pair for pair in pairs if baseline is not None and baseline in pair.pair}
    transfers: dict[str, Row] = {}
    for name in table.methods:
        is_reference = name in table.references
        regret = summarize(())
        if oracle is not None and not is_reference:
            regret = table.gain(oracle, name, column)
        transfers[name] = _gain(table, column, name, baseline) | {
            "oracle": oracle,
            "regret": regret.mean,
            "regret_standard_error": regret.standard_error,
            "negative_transfer": _is_worse(name, between.get(name)),
        }
    return transfers


def _gain(table: ScoreTable, column: ScoreColumn, name: str, baseline: str | None) -> Row:
    """A method's gain over the baseline with its interval, and whether it shows headroom."""
    alpha = table.experiment.alpha
    overlap = table.overlap(column)
    gain = summarize(())
    headroom = None
    if baseline is not None and baseline != name:
        gain = table.gain(name, baseline, column)
        if gain.n and name in table.references:
            differences = table.differences(name, baseline, column)
            headroom = is_shown(differences, alpha, overlap, table.decimals[table.place(column)])
    low, high = gain.allowing(overlap).interval(alpha)
    return {
        "gain": gain.mean,
        "gain_standard_error": gain.standard_error,
        "gain_low": low,
        "gain_high": high,
        "headroom": headroom,
    }


def _is_worse(name: str, pair: PairedComparison | None) -> bool | None:
    """Whether a method was shown to be worse than the baseline; None without a test."""
    if pair is None:
        return None
    worse = "" if pair.outcome == SAME else _worse(pair)
    return None if worse is None else worse == name
