"""Builds the reports of commands: the tables of an analysis, its notes and problems, and what to do next."""

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
from msda_bench.results.notes import all_ok, folder_lines, is_whole, problem_lines
from msda_bench.results.report import Line, Report, Section
from msda_bench.results.verdict import conclusion, how_to_read, verdict_across


def folder_report(
    command: str, analysis: Analysis, shown: Sequence[View], faults: Sequence[str], *, among_recorded: bool = False
) -> Report:
    """The report of `run` and `leaderboard`, and of `compare` for all methods of a folder.

    `shown` are the views of the analysis, and `faults` has a line for each record that is damaged or in conflict.
    Methods that are ranked `among_recorded` ones have tables without marks and verdicts.
    """
    complete = not faults and all_ok(analysis.selected)
    lines = tuple(folder_lines(analysis.runs, noted=analysis.notes))
    if command == "compare":
        sections = [
            Section(tuple(pairs_tables(view)), tuple(Line("caption", note) for note in pairs_notes(view)))
            for view in shown
        ]
        sections += [Section(tuple(across_tables(analysis.across))), Section(lines=lines)]
        return Report(tuple(sections), analysis.comparisons, complete)
    if among_recorded:
        sections = [Section(tuple(map(leaderboard_table, shown)), lines)]
        return Report(tuple(sections), analysis.leaderboard, complete)
    alphas = {view.experiment.alpha for view in shown if not view.pairs.empty}
    read = (Line("caption", how_to_read(alpha)) for alpha in sorted(alphas))
    said = [" ".join((f"{conclusion(view.experiment, view.pairs)}.", *advice_of(view))) for view in shown]
    said += verdict_across(analysis.across)[:1] if analysis.across is not None else ()
    ends = (Line("caption", line) for line in ("", *said))
    sections = [Section(tuple(map(leaderboard_table, shown)), (*read, *lines, *ends))]
    return Report(tuple(sections), analysis.leaderboard, complete)


def advice_of(view: View) -> tuple[str, ...]:
    """The sentences on what to do after an experiment, which every surface shows as they are."""
    return view.advice.sentences if view.advice is not None else ()


def advice(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Says what to do after the runs of each experiment: which method to use, and what to expect of it.

    Args:
        runs: a result folder, a frame from `load_results`, or some of its rows, which are judged as if they were the
            whole plan.

    Returns:
        One row for each experiment: `experiment`; the `method` to use, None where the runs do not tell; `equals`, a
        tuple of the methods that were not shown to be worse than the best; `metric`; the method's `mean` over the
        targets with its interval, `low` and `high`, as in leaderboard.csv; its `worst` target with `worst_mean`,
        `worst_low` and `worst_high`; `at_chance`, a tuple of the targets where it is not clearly better than a constant
        answer; and `text`, the sentences that `run` and the page show.
    """
    rows = [view.advice for view in views(analyse(runs_of(runs))) if view.advice is not None]
    names = [field.name for field in fields(Advice) if field.name not in SENTENCES]
    table = [{name: getattr(row, name) for name in names} | {"text": " ".join(row.sentences)} for row in rows]
    return pd.DataFrame(table, columns=[*names, "text"])


def across_report(runs: pd.DataFrame, across: Across, by: str | None = None) -> Report:
    """The report of `compare --across`; `by` is the criterion that selects settings instead of the suite's own."""
    note = (Line("note", f"settings are those that {by} selects"),) if by else ()
    lines = (*note, *(Line("problem", line) for line in problem_lines(runs)))
    sections = (Section(tuple(across_tables(across))), Section(lines=lines))
    return Report(sections, standings(across), is_whole(runs))
