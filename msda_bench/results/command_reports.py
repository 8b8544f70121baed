"""Builds the reports of commands: the tables of an analysis, its notes and problems, and advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pandas as pd

from msda_bench.results.across import Across, standings
from msda_bench.results.advice import SENTENCES, Advice
from msda_bench.results.experiment_tables import (
    View,
    across_tables,
    leaderboard_table,
    pairs_notes,
    pairs_tables,
    views,
)
from msda_bench.results.frame import runs_of
from msda_bench.results.leaderboard import Analysis, analyse
from msda_bench.results.notes import folder_lines, is_whole
from msda_bench.results.problems import problem_lines
from msda_bench.results.report import Line, Report, Section
from msda_bench.results.verdict import conclusion, how_to_read
from msda_bench.results.verdict_across import verdict_across


def folder_report(command: str, analysis: Analysis, shown: Sequence[View]) -> Report:
    """The report of `run` and `leaderboard`, and of `compare` for all methods of a folder.

    `shown` are the views of the analysis. Methods that are ranked among recorded ones have no verdicts.
    """
    complete = is_whole(analysis.selected)
    lines = tuple(folder_lines(analysis.runs, noted=analysis.notes))
    if command == "compare":
        sections = [_pairs_section(view) for view in shown]
        sections.append(Section(tuple(across_tables(analysis.across))))
        sections.append(Section(lines=lines))
        return Report(tuple(sections), analysis.comparisons, complete)
    if not any(view.among_recorded for view in shown):
        lines = (*_how_to_read(shown), *lines, *_conclusions(analysis, shown))
    tables = tuple(leaderboard_table(view) for view in shown)
    return Report((Section(tables, lines),), analysis.leaderboard, complete)


def _pairs_section(view: View) -> Section:
    notes = tuple(Line("caption", note) for note in pairs_notes(view))
    return Section(tuple(pairs_tables(view)), notes)


def _how_to_read(shown: Sequence[View]) -> list[Line]:
    """How to read the intervals of each level."""
    alphas = {view.experiment.alpha for view in shown if view.pairs}
    return [Line("caption", how_to_read(alpha)) for alpha in sorted(alphas)]


def _conclusions(analysis: Analysis, shown: Sequence[View]) -> list[Line]:
    """A line on each experiment with its advice, and one on all of them together."""
    sentences = [""]
    for view in shown:
        concluded = f"{conclusion(view.experiment, view.pairs)}."
        sentences.append(" ".join((concluded, *advice_of(view))))
    if analysis.across is not None:
        sentences += verdict_across(analysis.across)[:1]
    return [Line("caption", sentence) for sentence in sentences]


def advice_of(view: View) -> tuple[str, ...]:
    """The sentences on what to do after an experiment, the same in texts and on pages."""
    if view.advice is None:
        return ()
    return view.advice.sentences


def advice(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Says what to do after the runs of each experiment: which method to use, and what to expect of it.

    Args:
        runs: a result folder, a frame from `load_results`, or some of its rows, which are then taken for the whole
            plan.

    Returns:
        One row for each experiment: `experiment`; the `method` to use, None where no method is recommended; `equals`, a
        tuple of the methods that were not shown to be worse than the best; `metric`; the method's `mean` over the
        targets with its interval, `low` and `high`, as in leaderboard.csv; its `worst` target with `worst_mean`,
        `worst_low` and `worst_high`; `at_chance`, a tuple of the targets where it is not clearly better than a constant
        answer; and `text`, the sentences that `run` and the page show.
    """
    names = [field.name for field in fields(Advice) if field.name not in SENTENCES]
    rows = []
    for view in views(analyse(runs_of(runs))):
        if view.advice is not None:
            row = {name: getattr(view.advice, name) for name in names}
            row["text"] = " ".join(view.advice.sentences)
            rows.append(row)
    return pd.DataFrame(rows, columns=[*names, "text"])


def across_report(runs: pd.DataFrame, across: Across, by: str | None = None) -> Report:
    """The report of `compare --across`; `by` is the criterion that selects settings instead of the suite's own."""
    lines = [Line("problem", line) for line in problem_lines(runs)]
    if by:
        lines.insert(0, Line("note", f"settings are those that {by} selects"))
    sections = (Section(tuple(across_tables(across))), Section(lines=tuple(lines)))
    return Report(sections, standings(across), is_whole(runs))
