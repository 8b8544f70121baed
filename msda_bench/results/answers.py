"""Builds what the commands answer: the tables of an analysis with its notes, as one report."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from msda_bench.results.across import Across, standings
from msda_bench.results.across_tables import across_tables
from msda_bench.results.experiment_tables import leaderboard_table, pairs_notes, pairs_tables, remarks, views
from msda_bench.results.leaderboard import Analysis
from msda_bench.results.notes import all_ok, is_whole, problem_lines
from msda_bench.results.report import Line, Report, Section


def folder_report(
    command: str,
    analysis: Analysis,
    faults: Sequence[str],
) -> Report:
    """What `run` and `leaderboard` answer, and `compare` of all methods of a folder.

    `faults` has a line for each record that is damaged or in conflict.
    """
    shown = list(views(analysis))
    complete = not faults and all_ok(analysis.selected)
    sections, data = [Section(tuple(map(leaderboard_table, shown)))], analysis.leaderboard
    if command == "compare":
        data, sections = analysis.comparisons, []
        for view in shown:
            captions = (Line("caption", note) for note in pairs_notes(view))
            sections.append(Section(tuple(pairs_tables(view)), (*captions, *remarks(view))))
        sections.append(Section(tuple(across_tables(analysis.across))))
    return Report(tuple(sections), data, complete)


def across_report(runs: pd.DataFrame, across: Across, by: str | None = None) -> Report:
    """What `compare --across` answers; `by` is the criterion that selects settings instead of the suite's own."""
    note = (Line("note", f"settings are those that {by} selects"),) if by else ()
    lines = (*note, *(Line("problem", line) for line in problem_lines(runs)))
    sections = (Section(tuple(across_tables(across))), Section(lines=lines))
    return Report(sections, standings(across), is_whole(runs))
