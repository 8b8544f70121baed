"""Builds the tables of an experiment (leaderboard, averages, pairs of methods) and those across datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from msda_bench.errors import printable
from msda_bench.results.across import Across, standings
from msda_bench.results.bootstrap import MIN_RUNS, RESAMPLES
from msda_bench.results.compare import COLUMNS
from msda_bench.results.decision import MIN_PAIRS_ACROSS, OPPOSITE, SAME, WORSE
from msda_bench.results.frame import AVERAGE, own_rows
from msda_bench.results.leaderboard import Analysis
from msda_bench.results.notes import notes, problem_lines
from msda_bench.results.rows import against, control_of, shown_family
from msda_bench.results.select import select
from msda_bench.results.tables import Marks, Table, Unit, mean_cell, show_p
from msda_bench.results.verdict import too_few_datasets, verdict, verdict_across
from msda_bench.suite.plan import DEFAULT_MEASURES, Experiment

SECONDS = "seconds"
"""A column of leaderboards that is shown on request."""
_BETTER, _WORSE = "*", "!"
_DECIDED = ["method", "outcome"]
_MARKS = {"better": _BETTER, "worse": _WORSE}
"""Marks by outcome."""
_COLUMN = {"average": AVERAGE, "across_targets": "across targets", "across_datasets": "across datasets"}


@dataclass(frozen=True)
class View:
    """One experiment's part of an analysis, with the options of its tables."""

    experiment: Experiment
    runs: pd.DataFrame
    board: pd.DataFrame
    pairs: pd.DataFrame
    marks: Marks = "holm"
    digits: int = 2
    timed: bool = False

    @property
    def unit(self) -> Unit:
        """The unit of its numbers."""
        best = self.board.groupby("target", observed=True, sort=False)["mean"].min()
        return Unit.of(self.experiment.measure, best, self.digits)

    @property
    def columns(self) -> list[str]:
        """The targets and `average`, or the only target."""
        targets = list(dict.fromkeys(self.board["target"]))
        return targets if len(targets) > 2 else targets[:-1]  # noqa: PLR2004

    @property
    def is_timed(self) -> bool:
        """Whether its leaderboard has the column `seconds`, whose values depend on the machine."""
        return self.timed and SECONDS not in self.columns

    @cached_property
    def verdict(self) -> tuple[str, ...]:
        """The sentences of its verdict."""
        return verdict(self.experiment, select(self.runs), self.board, self.pairs)

    @cached_property
    def control(self) -> str | None:
        """The method with which the comparisons that decide the marks compare the others; None for all pairs."""
        return control_of(self.pairs)

    def mark(self, row: Any) -> str:
        """The mark of a row of the leaderboard."""
        if self.control is not None and self.marks == "holm":
            return _MARKS.get(self._against_control.get((row["target"], row["method"]), ""), "")
        marked = row["bold_paper"] if self.marks == "paper" else row["bold_holm"]
        return _BETTER if pd.notna(marked) and marked else ""

    @cached_property
    def _against_control(self) -> dict[tuple[str, str], str]:
        """The outcomes against the control, by column and method."""
        return {
            (column, method): outcome
            for column in self.columns
            for method, outcome in against(self.within(column), self.control or "")[_DECIDED].to_numpy().tolist()
        }

    def within(self, column: str) -> pd.DataFrame:
        """The comparisons over seeds of one column of the table."""
        if column == AVERAGE:
            return self.pairs[self.pairs["scope"] == "average"]
        return self.pairs[(self.pairs["scope"] == "target") & (self.pairs["target"] == column)]


def views(analysis: Analysis, marks: Marks = "holm", digits: int = 2, *, timed: bool = False) -> Iterator[View]:
    """A view of each experiment of an analysis that has rows, in the plan's order."""
    plan = analysis.runs.attrs["plan"]
    for experiment in plan.experiments:
        frames = analysis.runs, analysis.leaderboard, analysis.comparisons
        runs, board, pairs = (own_rows(experiment, frame) for frame in frames)
        if len(board):
            yield View(experiment, runs, board, pairs, marks, digits, timed)


def leaderboard_table(view: View) -> Table:
    """The experiment's table as in a paper: one row per method, references last, and one column per target."""
    experiment, unit, board = view.experiment, view.unit, view.board
    board = board[board["target"].isin(view.columns)]
    board = board.assign(is_partial=_are_partial(board))
    rows: dict[str, dict[str, str]] = {}
    for row in board.sort_values("reference", kind="stable").to_dict("records"):
        n = f"{row['n_ok']}/{row['n_planned']}" if row["is_partial"] else ""
        own = rows.setdefault(row["method"], {"method": printable(row["method"])})
        own[printable(row["target"])] = mean_cell(unit, row, view.mark(row), n)
    if view.is_timed:
        for name, seconds in _seconds(view.runs).items():
            rows[str(name)][SECONDS] = "-" if pd.isna(seconds) else f"{seconds:.2f}"
    cells = pd.DataFrame(list(rows.values()))
    title = f"{experiment.name} ({experiment.dataset}): {unit.label}, mean +- standard error of {_seeds_of(board)}"
    return Table(experiment.name, title, cells, tuple(_caption(view)), view.verdict, tuple(remarks(view)))


def _seconds(runs: pd.DataFrame) -> pd.Series[float]:
    """Seconds of training by method: the mean over the ok runs of the selected candidates."""
    chosen = select(runs)
    ok = (chosen["status"] == "ok").to_numpy()
    return chosen["train_seconds"].where(ok).groupby(chosen["method"].astype(object), sort=False).mean()


def summary_table(view: View) -> Table:
    """The mean over targets, or the only target: ranks, intervals, gains over the baseline, regrets to the oracle."""
    experiment, unit, column = view.experiment, view.unit, view.columns[-1]
    level = f"{100 * (1 - experiment.alpha):g} %"
    rows = []
    for row in view.board[view.board["target"] == column].sort_values("reference", kind="stable").to_dict("records"):
        loss = " NT" if pd.notna(row["negative_transfer"]) and row["negative_transfer"] else ""
        rows.append({
            "method": printable(row["method"]),
            "rank": "-" if pd.isna(row["rank"]) else str(row["rank"]),
            "mean": unit.show(row["mean"]),
            f"{level} interval": unit.interval(row["mean_low"], row["mean_high"]),
            "IQM": unit.show(row["iqm"]),
            f"its {level} interval": unit.interval(row["iqm_low"], row["iqm_high"]),
            f"gain over {experiment.baseline}" if experiment.baseline else "gain": (
                unit.show(row["gain"], signed=True) + loss
            ),
            "regret": unit.show(row["regret"], signed=True),
        })  # fmt: skip
    title = f"{experiment.name}: {column}, {unit.label}"
    return Table(f"{experiment.name}-summary", title, pd.DataFrame(rows), tuple(_summary_notes(view, column)))


def pairs_tables(view: View) -> Iterator[Table]:
    """The comparisons of the view's family: a table for each target, one for their mean, and one across targets."""
    pairs = shown_family(view.pairs if len(view.columns) > 1 else view.pairs[view.pairs["scope"] == "target"])
    # With too few targets for a test, a note replaces the table.
    pairs = pairs[(pairs["scope"] != "across_targets") | (pairs["n_planned"] >= MIN_PAIRS_ACROSS)]
    for (scope, target), block in pairs.groupby(["scope", "target"], dropna=False, sort=False):
        column = _COLUMN.get(str(scope), printable(target))
        name = f"{view.experiment.name}-pairs" + ("" if column == view.columns[-1] else f"-{column}")
        title = f"{view.experiment.name}: pairs of methods, {column}, {view.unit.label}"
        yield Table(name, title, _pair_cells(view.unit, block), about=_pair_methods(block))


def pairs_notes(view: View) -> tuple[str, ...]:
    """Explains the tables of pairs."""
    alpha, family = view.experiment.alpha, _family(view)
    read = (
        "a > b: a is significantly better, and differences are positive where a is better; a = b: every pair is equal; "
        "where nothing is shown, nothing is ordered: a against b, differences a - b. median: of the differences; "
        f"interval: of their Hodges-Lehmann estimate, level {100 * (1 - alpha):g} %; p: exact two-sided Wilcoxon "
        f"signed-rank test; Holm: p after Holm's correction over {family} in the same table; 80 %: the smallest true "
        "difference that the test would find with probability 0.8; W/T/L: pairs won, tied, lost by a; n: pairs at "
        "hand, of those planned."
    )
    more = (
        f"across targets, a pair is a target, its mean over seeds: fewer than {MIN_PAIRS_ACROSS} are never significant"
        f"{', and are not shown' if len(view.columns) <= MIN_PAIRS_ACROSS else ''}."
    )
    return (read, more) if len(view.columns) > 1 else (read,)


def across_tables(across: Across | None, digits: int = 2) -> Iterator[Table]:
    """Tables of methods across datasets: mean ranks with groups and gains over the baseline, then the pairs."""
    if across is None or not (across.mean_ranks or across.gains):
        return
    unit = Unit.of(DEFAULT_MEASURES["classification"], (), digits)
    title = f"across {len(across.datasets)} datasets: {', '.join(across.datasets)}"
    cells = pd.DataFrame([_standing(across, unit, row) for row in standings(across).to_dict("records")])
    yield Table("across-datasets", title, cells, tuple(_across_notes(across)), verdict_across(across))
    if across.concludes:
        pairs = pd.DataFrame(across.rows, columns=COLUMNS)
        pairs, title = shown_family(pairs), "pairs of methods across datasets"
        yield Table("across-datasets-pairs", title, _pair_cells(unit, pairs), about=_pair_methods(pairs))


def _standing(across: Across, unit: Unit, row: Mapping[Any, Any]) -> dict[str, str]:
    """A row of `standings` as cells."""
    rank = "-" if pd.isna(row["mean_rank"]) else f"{row['mean_rank']:.2f}"
    cells = {"method": printable(row["method"]), "mean rank": rank}
    if across.baseline is None:
        return cells
    is_base = row["method"] == across.baseline
    cells["mean gain"] = "-" if is_base else unit.show(row["mean_gain"], signed=True)
    cells["interval"] = "-" if is_base else unit.interval(row["mean_gain_low"], row["mean_gain_high"])
    for what in ("better", "worse"):
        cells[what] = f"{row[f'n_{what}']}/{row['n_tested']}" if row["n_tested"] else "-"
    for name in across.experiments:
        cells[name] = unit.show(row[f"gain:{name}"], signed=True) + _MARKS.get(row[f"outcome:{name}"], "")
    return cells


def _across_notes(across: Across) -> Iterator[str]:
    if across.baseline is not None:
        yield (
            f"mean gain and the columns of experiments: gain over {across.baseline} in points of accuracy, mean over "
            f"targets and seeds, with its {100 * (1 - across.alpha):g} % interval over the seeds of these experiments; "
            f"{_BETTER}: significantly better than {across.baseline}, {_WORSE}: significantly worse (exact two-sided "
            f"signed-rank tests over the seeds, alpha {across.alpha:g}, Holm's correction as in the experiment's own "
            "tables). better, worse: in how many experiments, of those where a test could show it."
        )
    if across.mean_ranks:
        yield f"Mean rank: {across.reason}."
    if across.separates:
        yield from (f"No difference was shown within {', '.join(group)}." for group in across.cliques)
    elif across.concludes:
        yield f"One group: {too_few_datasets(across)}."
    yield from (f"Not included: {line}." for line in across.skipped)


def _pair_cells(unit: Unit, pairs: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for row in pairs.to_dict("records"):
        turned, significant = row["outcome"] == WORSE, row["outcome"] in OPPOSITE
        sign = -1 if turned else 1
        low, high = (-row["hl_high"], -row["hl_low"]) if turned else (row["hl_low"], row["hl_high"])
        won = (row["losses"], row["wins"]) if turned else (row["wins"], row["losses"])
        names = (row["second"], row["first"]) if turned else (row["first"], row["second"])
        tested = row["n_paired"] > 0
        rows.append({
            "pair": (" > " if significant else " = " if row["outcome"] == SAME else " against ").join(names),
            "median": unit.show(sign * row["median_difference"], signed=True),
            "interval": unit.interval(low, high),
            "p": show_p(row["p_two_sided"]),
            "Holm": show_p(row["p_holm"]) + ("*" if significant else ""),
            "80 %": unit.show(row["detectable"]),
            "W/T/L": f"{won[0]:.0f}/{row['ties']:.0f}/{won[1]:.0f}" if tested else "-",
            "n": f"{row['n_paired']}/{row['n_planned']}",
        })  # fmt: skip
    return pd.DataFrame(rows)


def _pair_methods(pairs: pd.DataFrame) -> list[tuple[str, str]]:
    return [(printable(row["first"]), printable(row["second"])) for row in pairs.to_dict("records")]


def _are_partial(board: pd.DataFrame) -> pd.Series[bool]:
    """Whether a cell has only some of its planned runs, if cells differ in their numbers of ok runs."""
    return board["n_ok"].between(1, board["n_planned"] - 1) & (board["n_ok"].nunique() > 1)


def _seeds_of(board: pd.DataFrame) -> str:
    """The number of seeds that the means are over, in words."""
    low, high, planned = board["n_ok"].min(), board["n_ok"].max(), board["n_planned"].iloc[0]
    if low == high == planned:
        return _counted(planned, "seed")
    return f"{high} of {_counted(planned, 'seed')}" if low == high else f"up to {_counted(high, 'seed')}"


def _caption(view: View) -> Iterator[str]:
    """Notes that explain the marks of the leaderboard."""
    board = view.board[view.board["target"].isin(view.columns)]
    marks = {view.mark(row) for row in board.to_dict("records")} - {""}
    if marks:
        yield _marks_read(view, marks, pd.concat([view.within(column) for column in view.columns]))
    if view.is_timed:
        yield f"{SECONDS}: of training, mean over the runs shown; runs that were trained as one stack share its time."
    if _are_partial(board).any():
        yield "(n/N): only n of N planned runs are ok; the mean is theirs."
    references = list(dict.fromkeys(board.loc[board["reference"], "method"]))
    if references:
        yield f"Reference, not ranked and not tested: {', '.join(references)}."


def _marks_read(view: View, marks: set[str], pairs: pd.DataFrame) -> str:
    alpha, control, seeds = view.experiment.alpha, view.control, _range(pairs.loc[pairs["n_paired"] > 0, "n_paired"])
    test = f"paired over {seeds}, alpha {alpha:g}"
    if view.marks == "paper":
        return (
            f"{_BETTER}: the paper's bold: the best mean, and every method not significantly worse than it (exact "
            f"one-sided Wilcoxon signed-rank test {test}, not corrected for many tests)."
        )
    holm = f"exact two-sided Wilcoxon signed-rank tests {test}, Holm's correction over {_family(view)}"
    if control is None:
        return f"{_BETTER}: the best mean, and every method that was not shown to be worse ({holm})."
    means = {_BETTER: "better", _WORSE: "worse"}
    read = "; ".join(f"{mark}: significantly {means[mark]} than {control}" for mark in sorted(marks, reverse=True))
    return f"{read} ({holm})."


def _family(view: View) -> str:
    ranked = view.board.loc[~view.board["reference"].astype(bool), "method"].nunique()
    if view.control is None:
        return f"all {ranked * (ranked - 1) // 2} pairs"
    return f"the {_counted(ranked - 1, 'comparison')} with {view.control}"


def remarks(view: View) -> Iterator[str]:
    """Notes on the experiment's runs, then their problems."""
    for note in notes(view.runs):
        if note.experiment == view.experiment.name:
            yield f"note: {printable(note.line, 2000)}"
    for line in problem_lines(view.runs):
        yield f"problem: {line}"


def _summary_notes(view: View, column: str) -> Iterator[str]:
    experiment = view.experiment
    yield (
        f"Intervals: percentile bootstrap, {RESAMPLES} resamples of the seeds within each target; none for fewer than "
        f"{MIN_RUNS} runs. IQM: interquartile mean, of the middle half of each target's runs, averaged over targets."
    )
    if experiment.baseline is None:
        yield "No gain is shown: the suite has no baseline; name one by compare: {baseline: METHOD}."
    else:
        yield (
            f"Gain: mean paired difference to {experiment.baseline}, positive where better; NT: negative transfer, "
            f"{experiment.baseline} is significantly better (as in the table of pairs)."
        )
    oracles = view.board.loc[view.board["target"] == column, "oracle"].dropna()
    if len(oracles):
        yield f"Regret: mean paired difference from the best reference, {oracles.iloc[0]}."


def _range(counts: pd.Series[int]) -> str:
    low, high = (counts.min(), counts.max()) if len(counts) else (0, 0)
    return _counted(high, "seed") if low == high else f"{low} to {high} seeds"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
