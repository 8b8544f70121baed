"""Builds what the commands answer: the tables of an analysis, its notes and problems, and where a method stands."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from msda_bench.results.across import Across, standings
from msda_bench.results.experiment_tables import across_tables, leaderboard_table, pairs_notes, pairs_tables, views
from msda_bench.results.leaderboard import Analysis
from msda_bench.results.notes import all_ok, folder_lines, is_whole, problem_lines
from msda_bench.results.report import Line, Report, Section
from msda_bench.results.verdict import conclusion, how_to_read, verdict_across


def folder_report(command: str, analysis: Analysis, faults: Sequence[str], *, among_recorded: bool = False) -> Report:
    """What `run` and `leaderboard` answer, and `compare` of all methods of a folder.

    `faults` has a line for each record that is damaged or in conflict. Methods that are ranked `among_recorded` ones
    have tables without marks and verdicts.
    """
    shown = list(views(analysis, among_recorded=among_recorded))
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
    said = [conclusion(view.experiment, view.pairs) for view in shown]
    said += verdict_across(analysis.across)[:1] if analysis.across is not None else ()
    ends = (Line("caption", line) for line in ("", *said))
    sections = [Section(tuple(map(leaderboard_table, shown)), (*read, *lines, *ends))]
    return Report(tuple(sections), analysis.leaderboard, complete)


def across_report(runs: pd.DataFrame, across: Across, by: str | None = None) -> Report:
    """What `compare --across` answers; `by` is the criterion that selects settings instead of the suite's own."""
    note = (Line("note", f"settings are those that {by} selects"),) if by else ()
    lines = (*note, *(Line("problem", line) for line in problem_lines(runs)))
    sections = (Section(tuple(across_tables(across))), Section(lines=lines))
    return Report(sections, standings(across), is_whole(runs))
