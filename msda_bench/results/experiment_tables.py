"""Builds the tables of an experiment (leaderboard, averages, pairs of methods) and those across datasets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from msda_bench.results import formats
from msda_bench.results.across import Across, standings
from msda_bench.results.advice import Advice, advice_on
from msda_bench.results.chance import BesideChance
from msda_bench.results.compare import comparisons_frame
from msda_bench.results.decision import (
    ALL_PAIRS,
    BETTER,
    WORSE,
    PairedComparison,
    test_baseline,
    with_baseline,
    with_method,
)
from msda_bench.results.formats import MARKS, Unit
from msda_bench.results.frame import AVERAGE, own_rows
from msda_bench.results.leaderboard import Analysis, Row, rows_of_mean
from msda_bench.results.notes import Note
from msda_bench.results.report import BEST_MARK, Column, Table
from msda_bench.results.scores import ScoreTable
from msda_bench.results.verdict import verdict
from msda_bench.results.verdict_across import too_few_datasets, verdict_across
from msda_bench.results.words import counted
from msda_bench.suite.plan import DEFAULT_METRICS, Experiment

_PAIR = ("first", "second")
"""Columns that name a pair of methods."""
_MEAN = ("mean", "standard_error", "rank", "mark", "partial")


@dataclass(frozen=True)
class View:
    """One experiment's part of an analysis.

    Attributes:
        table: its scores.
        runs: its runs with the selected settings.
        rows: its rows of the leaderboard.
        board: these as a frame.
        pairs: its decided comparisons.
        notes: the notes on it.
        among_recorded: whether methods are only ranked among recorded ones; then there are no marks and no verdict.
    """

    table: ScoreTable
    runs: pd.DataFrame
    rows: tuple[Row, ...]
    board: pd.DataFrame
    pairs: tuple[PairedComparison, ...]
    notes: tuple[Note, ...] = ()
    among_recorded: bool = False

    @property
    def experiment(self) -> Experiment:
        """The experiment of the plan."""
        return self.table.experiment

    @property
    def main_rows(self) -> Sequence[Row]:
        """The rows by which methods are ranked."""
        return rows_of_mean(self.table, self.rows)

    @cached_property
    def unit(self) -> Unit:
        """The unit of its numbers."""
        means: dict[str, list[float]] = {}
        for row in self.rows:
            if not math.isnan(row["mean"]):
                means.setdefault(row["target"], []).append(row["mean"])
        return Unit.of(self.experiment.measure, map(min, means.values()))

    @cached_property
    def columns(self) -> list[str]:
        """The targets and `average`, or the only target."""
        targets = list(dict.fromkeys(row["target"] for row in self.rows))
        return targets if len(targets) > 2 else targets[:-1]  # noqa: PLR2004

    @cached_property
    def verdict(self) -> tuple[str, ...]:
        """The sentences of its verdict."""
        if self.among_recorded:
            return ()
        return verdict(self.table, self.runs, self.rows, self.pairs, self.chance)

    @cached_property
    def chance(self) -> BesideChance:
        """Its means beside the score of constant answers."""
        return BesideChance.of(self.experiment, self.runs, self.rows)

    @cached_property
    def advice(self) -> Advice | None:
        """What to do; None for methods that are only ranked among recorded ones."""
        if self.among_recorded:
            return None
        return advice_on(self.table, self.runs, self.rows, self.pairs, self.chance)

    @cached_property
    def baseline(self) -> str | None:
        """The baseline, if each method is compared with it and with the best alone; None for all pairs."""
        return test_baseline(self.experiment, self.table.ranked)

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """Its comparisons as a frame."""
        return comparisons_frame(self.pairs)

    def outcome(self, row: Row) -> str:
        """The outcome of the method of a row of the leaderboard against the baseline; empty where it has no test."""
        if self.baseline is None or self.among_recorded:
            return ""
        return self._outcomes.get((row["target"], row["method"]), "")

    @cached_property
    def _outcomes(self) -> dict[tuple[str, str], str]:
        """The outcomes against the baseline, by target and method."""
        outcomes = {}
        for pair in with_method(self.pairs, self.baseline):
            name = pair.other(str(self.baseline))
            outcomes[_place(pair), name] = pair.outcome_of(name)
        return outcomes


def _place(pair: PairedComparison) -> str:
    """The target of a comparison, or the name of their mean."""
    return AVERAGE if pair.target is None else pair.target


def views(analysis: Analysis, *, among_recorded: bool = False) -> Iterator[View]:
    """A view of each experiment of an analysis that has rows, in the plan's order."""
    for table, of_table, pairs in zip(analysis.tables, analysis.rows, analysis.pairs, strict=True):
        experiment = table.experiment
        rows = of_table
        board = own_rows(experiment, analysis.leaderboard)
        if among_recorded:
            rows = tuple(row | {"bold_holm": None} for row in of_table)
            board = board.assign(bold_holm=pd.Series(pd.NA, board.index, dtype="boolean"))
        runs = own_rows(experiment, analysis.selected)
        notes = tuple(note for note in analysis.notes if note.experiment == experiment.name)
        yield View(table, runs, rows, board, pairs, notes, among_recorded)


def leaderboard_table(view: View) -> Table:
    """The experiment's table as in a paper: one row per method, references last, and one column per target."""
    experiment = view.experiment
    rows = view.board[view.board["target"].isin(view.columns)].sort_values("reference", kind="stable")
    is_best = rows["bold_holm"].eq(other=True).fillna(value=False)
    some_runs = rows["n_ok"].astype(str) + "/" + rows["n_planned"].astype(str)
    rows = rows.assign(
        mark=is_best.map({True: BEST_MARK, False: ""}),
        partial=some_runs.where(_are_partial(rows), ""),
    )
    columns = [Column("method", formats.text, ["method"])]
    for target in view.columns:
        columns.append(Column(target, formats.mean, _MEAN, view.unit, ("target", target)))
    title = f"{experiment.name} ({experiment.dataset}): {view.unit.label}, mean +- standard error of {_seeds_of(rows)}"
    notes = tuple(_caption(view, is_marked=bool(is_best.any())))
    return Table(experiment.name, title, rows, tuple(columns), "method", notes, view.verdict)


def summary_table(view: View) -> Table:
    """The mean over targets, or the only target: ranks, intervals, gains over the baseline, regrets to the oracle."""
    experiment = view.experiment
    unit = view.unit
    column = view.columns[-1]
    level = f"{100 * (1 - experiment.alpha):g} %"
    rows = view.board[view.board["target"] == column].sort_values("reference", kind="stable")
    rows = rows.assign(loss=rows["negative_transfer"].map({True: " NT"}).fillna(""))
    gain = f"gain over {experiment.baseline}" if experiment.baseline else "gain"
    columns = (
        Column("method", formats.text, ["method"]),
        Column("rank", formats.count, ["rank"]),
        Column("mean", formats.number, ["mean"], unit),
        Column(f"{level} interval", formats.interval, ["mean_low", "mean_high"], unit),
        Column(gain, formats.difference, ["gain", "loss"], unit),
        Column("regret", formats.difference, ["regret"], unit),
    )
    title = f"{experiment.name}: {column}, {unit.label}"
    return Table(f"{experiment.name}-summary", title, rows, columns, notes=tuple(_summary_notes(view)))


def pairs_tables(view: View) -> Iterator[Table]:
    """The comparisons with the baseline, or all: a table for each target, and one for their mean."""
    blocks: dict[str | None, list[PairedComparison]] = {}
    for pair in with_baseline(view.pairs, view.baseline):
        if pair.target is not None or len(view.columns) > 1:
            blocks.setdefault(pair.target, []).append(pair)
    for target, pairs in blocks.items():
        column = AVERAGE if target is None else target
        name = f"{view.experiment.name}-pairs"
        if column != view.columns[-1]:
            name += f"-{column}"
        title = f"{view.experiment.name}: pairs of methods, {column}, {view.unit.label}"
        yield Table(name, title, comparisons_frame(pairs), _pair_columns(view.unit), about=_PAIR)


def pairs_notes(view: View) -> tuple[str, ...]:
    """Explains the tables of pairs, or says why there are none."""
    if not view.pairs:
        what = "fewer than two methods are ranked, so no pair is compared"
        return (f"{view.experiment.name}: {what}; `--against REFERENCE` compares with recorded methods.",)
    level = f"{100 * (1 - view.experiment.alpha):g} %"
    read = (
        "a > b: a is significantly better, and differences are positive where a is better; a = b: every pair is equal; "
        f"a against b: nothing is shown, so nothing is ordered. difference: the mean, with its {level} interval, which "
        "allows for the examples that seeds share; p: exact two-sided Wilcoxon signed-rank test; Holm: p after Holm's "
        f"correction over {_family(view)} in the same table; 80 %: the smallest true difference that the test would "
        "find with probability 0.8; n: pairs at hand, of those planned."
    )
    return (read,)


def _pair_columns(unit: Unit) -> tuple[Column, ...]:
    """The columns of a table of pairs."""
    return (
        Column("pair", formats.pair, [*_PAIR, "outcome"]),
        Column("difference", formats.difference_of_pair, ["mean_difference", "outcome"], unit),
        Column("interval", formats.interval_of_pair, ["difference_low", "difference_high", "outcome"], unit),
        Column("p", formats.p_value, ["p"]),
        Column("Holm", formats.p_value, ["p_holm"]),
        Column("80 %", formats.number, ["detectable"], unit),
        Column("n", formats.of_planned, ["n_paired", "n_planned"]),
    )


def _are_partial(board: pd.DataFrame) -> pd.Series[bool]:
    """Whether a cell has only some of its planned runs, if cells differ in their numbers of ok runs."""
    return board["n_ok"].between(1, board["n_planned"] - 1) & (board["n_ok"].nunique() > 1)


def _seeds_of(board: pd.DataFrame) -> str:
    """The number of seeds of the means, in words."""
    low = board["n_ok"].min()
    high = board["n_ok"].max()
    planned = board["n_planned"].iloc[0]
    if low < high:
        return f"up to {counted(high, 'seed')}"
    if high < planned:
        return f"{high} of {counted(planned, 'seed')}"
    return counted(planned, "seed")


def _caption(view: View, *, is_marked: bool) -> Iterator[str]:
    if view.among_recorded:
        yield "Recorded methods stand beside yours, ranked by their means; they are not tested here."
    board = view.board[view.board["target"].isin(view.columns)]
    if is_marked:
        yield _mark_read(view)
    if _are_partial(board).any():
        yield "(n/N): only n of N planned runs are ok; the mean is theirs."
    references = list(dict.fromkeys(board.loc[board["reference"], "method"]))
    if references:
        yield f"Reference, not ranked and not tested: {', '.join(references)}."


def _mark_read(view: View) -> str:
    """How to read the marks of the best methods."""
    counts = [pair.n_paired for pair in view.pairs if pair.n_paired and _place(pair) in view.columns]
    low = min(counts, default=0)
    high = max(counts, default=0)
    seeds = counted(high, "seed") if low == high else f"{low} to {high} seeds"
    tests = f"exact two-sided Wilcoxon signed-rank tests paired over {seeds}, alpha {view.experiment.alpha:g}"
    family = _family(view)
    if view.baseline is not None:
        family += ", and over the others with the best"
    return (
        f"{BEST_MARK}: the best mean, and every method that was not shown to be worse ({tests}, Holm's correction over "
        f"{family})."
    )


def _family(view: View) -> str:
    """The comparisons with which a test is corrected, in words."""
    ranked = len(view.table.ranked)
    if view.baseline is None:
        return f"all {ranked * (ranked - 1) // 2} pairs"
    return f"the {counted(ranked - 1, 'comparison')} with {view.baseline}"


def _summary_notes(view: View) -> Iterator[str]:
    experiment = view.experiment
    yield "Intervals: of the mean over the seeds, allowing for the examples that seeds share."
    if experiment.baseline is None:
        yield "No gain is shown: the suite has no baseline; name one by compare: {baseline: METHOD}."
    else:
        yield (
            f"Gain: mean paired difference to {experiment.baseline}, positive where better; NT: negative transfer, "
            f"{experiment.baseline} is significantly better (as in the table of pairs)."
        )
    oracle = view.main_rows[0]["oracle"]
    if oracle is not None:
        yield f"Regret: mean paired difference from the best reference, {oracle}."


def across_tables(across: Across | None) -> Iterator[Table]:
    """Tables of methods across datasets: gains over the baseline and mean ranks, then the pairs."""
    if across is None or not (across.mean_ranks or across.gains):
        return
    unit = Unit.of(DEFAULT_METRICS["classification"], ())
    title = f"across {len(across.datasets)} datasets: {', '.join(across.datasets)}"
    rows = standings(across)
    columns = [Column("method", formats.text, ["method"])]
    if across.baseline is not None:
        sizes = ["mean_gain", "mean_gain_low", "mean_gain_high"]
        rows[sizes] = rows[sizes].mask(rows["method"] == across.baseline)
        columns += [
            Column("mean gain", formats.difference, ["mean_gain"], unit),
            Column("interval", formats.interval, ["mean_gain_low", "mean_gain_high"], unit),
            Column("better", formats.of_tested, ["n_better", "n_tested"]),
            Column("worse", formats.of_tested, ["n_worse", "n_tested"]),
        ]
    columns.append(Column("mean rank", formats.decimals(2), ["mean_rank"]))
    for name in across.experiments:
        columns.append(Column(name, formats.gain_with_mark, [f"gain:{name}", f"outcome:{name}"], unit))
    notes = tuple(_across_notes(across))
    yield Table("across-datasets", title, rows, tuple(columns), notes=notes, verdict=verdict_across(across))
    if across.concludes:
        is_against = any(row.family != ALL_PAIRS for row in across.rows)
        pairs = with_baseline(across.rows, across.baseline if is_against else None)
        title = "pairs of methods across datasets"
        yield Table("across-datasets-pairs", title, comparisons_frame(pairs), _pair_columns(unit), about=_PAIR)


def _across_notes(across: Across) -> Iterator[str]:
    if across.baseline is not None:
        level = f"{100 * (1 - across.alpha):g} %"
        marks = f"{MARKS[BETTER].strip()}, {MARKS[WORSE].strip()}"
        yield (
            f"mean gain and the columns of experiments: gain over {across.baseline} in points of accuracy, mean over "
            f"targets and seeds, each experiment with equal weight, with its {level} interval, which allows for the "
            f"examples that seeds share; {marks} after a gain: significantly better or worse than {across.baseline} by "
            "the experiment's own tests; better, worse: in how many experiments, of those where a test could show it."
        )
    if across.mean_ranks:
        yield f"Mean rank: {across.reason}."
    if across.separates:
        for group in across.cliques:
            yield f"No difference was shown within {', '.join(group)}."
    elif across.concludes:
        yield f"One group: {too_few_datasets(across)}."
    for line in across.skipped:
        yield f"Not included: {line}."
