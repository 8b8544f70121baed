"""Builds what the commands answer: the tables of an analysis with its notes, as one report."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from msda_bench.results.across import Across, standings
from msda_bench.results.across_tables import across_tables
from msda_bench.results.experiment_tables import Marks, leaderboard_table, pairs_notes, pairs_tables, remarks, views
from msda_bench.results.leaderboard import Analysis
from msda_bench.results.notes import all_ok, folder_facts, is_whole, problem_lines
from msda_bench.results.report import Line, Report, Section


def folder_report(
    command: str,
    analysis: Analysis,
    faults: Sequence[str],
    *,
    marks: Marks = "holm",
    digits: int = 2,
    whole: bool = False,
) -> Report:
    """What `run` and `leaderboard` answer, and `compare` of all methods of a folder: with `whole` all pairs of these.

    `faults` has a line for each record that is damaged or in conflict; `marks` and `digits` are those of a `View`.
    """
    shown = list(views(analysis, marks, digits))
    complete = not faults and all_ok(analysis.selected)
    sections, data = [Section(tuple(map(leaderboard_table, shown)))], analysis.leaderboard
    if command == "compare":
        data, sections = analysis.comparisons, []
        for view in shown:
            captions = (Line("caption", note) for note in pairs_notes(view))
            sections.append(Section(tuple(pairs_tables(view, whole=whole)), (*captions, *remarks(view))))
        sections.append(Section(tuple(across_tables(analysis.across, digits))))
    facts = folder_facts(analysis.runs)
    return Report(command, tuple(sections), data, complete, tuple(faults), facts)


def across_report(runs: pd.DataFrame, across: Across, by: str | None = None, digits: int = 2) -> Report:
    """What `compare --across` answers; `by` is the criterion that selects settings instead of the suite's own."""
    note = (Line("note", f"settings are those that {by} selects"),) if by else ()
    facts = {
        "folders": [runs.attrs["folder"]],
        "suite": runs.attrs["plan"].suite,
        "datasets": list(across.datasets),
        "experiments": list(across.experiments),
        "baseline": across.baseline,
        "alpha": across.alpha,
        "by": by,
        "groups": [list(group) for group in across.cliques] if across.separates else [],
        "left_out": list(across.skipped),
    }
    if across.has_estimates:
        facts |= {"margin": across.margin, "primary": list(across.primary)}
    lines = (*note, *(Line("problem", line) for line in problem_lines(runs)))
    sections = (Section(tuple(across_tables(across, digits))), Section(lines=lines))
    return Report("compare", sections, standings(across), is_whole(runs), runs.attrs["fault_lines"], facts)
