"""Builds what the commands answer: the tables of an analysis, its notes and problems, and where a method stands."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from msda_bench.results.across import Across, standings
from msda_bench.results.compare import against, main_pairs, main_rows
from msda_bench.results.decision import BETTER, EXPLORATORY, SAME, WORSE
from msda_bench.results.experiment_tables import across_tables, leaderboard_table, pairs_notes, pairs_tables, views
from msda_bench.results.leaderboard import Analysis, analyse
from msda_bench.results.notes import all_ok, folder_lines, is_whole, problem_lines
from msda_bench.results.reference import Reference, beside
from msda_bench.results.report import Line, Report, Section, mean_text
from msda_bench.results.runs import results_of
from msda_bench.results.verdict import conclusion, how_to_read, verdict_across
from msda_bench.results.words import counted, name_of
from msda_bench.suite.plan import Experiment


def folder_report(command: str, analysis: Analysis, faults: Sequence[str]) -> Report:
    """What `run` and `leaderboard` answer, and `compare` of all methods of a folder.

    `faults` has a line for each record that is damaged or in conflict.
    """
    shown = list(views(analysis))
    complete = not faults and all_ok(analysis.selected)
    lines = tuple(folder_lines(analysis.runs, noted=analysis.notes))
    if command == "compare":
        sections = [
            Section(tuple(pairs_tables(view)), tuple(Line("caption", note) for note in pairs_notes(view)))
            for view in shown
        ]
        sections += [Section(tuple(across_tables(analysis.across))), Section(lines=lines)]
        return Report(tuple(sections), analysis.comparisons, complete)
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


def against_report(command: str, runs: pd.DataFrame, reference: Reference) -> Report:
    """The report of a folder's runs `beside` those of a reference, with a sentence for each of its methods."""
    analysis = analyse(beside(runs, reference))
    report = folder_report(command, analysis, results_of(runs).fault_lines)
    lines = tuple(Line("verdict", line) for line in standing(analysis, own_methods(runs)))
    return replace(report, sections=(*report.sections, Section(lines=lines)))


def own_methods(runs: pd.DataFrame) -> dict[str, list[str]]:
    """The methods that the runs of a folder have by themselves, by experiment."""
    return {table.name: [method.name for method in table.methods] for table in results_of(runs).plan.experiments}


def standing(analysis: Analysis, mine: Mapping[str, Collection[str]]) -> Iterator[str]:
    """A sentence for each of these methods, by experiment: its rank, and its gain over the baseline.

    The test is that of the tables: exact, two-sided, with Holm's correction over the family, in which it is.
    """
    for table in results_of(analysis.runs).plan.experiments:
        rows = main_rows(analysis.leaderboard[(analysis.leaderboard["experiment"] == table.name).to_numpy()])
        pairs = main_pairs(analysis.comparisons)
        pairs = pairs[(pairs["experiment"] == table.name).to_numpy()]
        ranked = rows[rows["rank"].notna()]
        for row in ranked[ranked["method"].isin(mine[table.name])].to_dict("records"):
            place = f"{table.name}: {name_of(row['method'])} is number {row['rank']} of {len(ranked)} ranked methods"
            unit = f"{'% ' if table.measure.percent else ''}{table.measure.label}"
            yield f"{place} ({mean_text(row)} {unit}). {_beside_baseline(table, pairs, row['method'])}"


def _beside_baseline(table: Experiment, pairs: pd.DataFrame, method: str) -> str:
    of_pair = [{*names} == {method, table.baseline} for names in pairs[["first", "second"]].to_numpy()]
    pairs = pairs[of_pair]
    others = against(pairs, table.baseline or "")
    if others.empty or pd.isna(others["difference"].iloc[0]):
        return "It shares no seed with a baseline."
    form, row = "{:+.2f}" if table.measure.percent else "{:+.3g}", others.iloc[0]
    base = name_of(table.baseline)
    gain = f"Against the baseline {base}: {form.format(row['difference'])}"
    if pd.notna(row["low"]):
        gain += f" [{form.format(row['low'])}, {form.format(row['high'])}] over {counted(int(row['pairs']), 'seed')}"
    words = {BETTER: "significantly better", WORSE: "significantly worse", SAME: "equal in every pair"}
    ends = words.get(row["outcome"], "not shown to differ")
    if (known := row.get("standing")) is not None and pd.notna(known):
        ends = f"{known} (margin {table.margin:g})"
    whose = "Benjamini and Hochberg" if str(pairs["family"].iloc[0]).startswith(EXPLORATORY) else "Holm"
    return f"{gain}, {ends}, after {whose}'s correction over {counted(int(pairs['n_family'].iloc[0]), 'comparison')}."
