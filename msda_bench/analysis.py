"""What sections, charts and pages of results are made with; kept stable like `msda_bench.api`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msda_bench.results.across import Across, across_of, standings
from msda_bench.results.across_tables import across_tables
from msda_bench.results.compare import COMPARISONS
from msda_bench.results.criteria import ALL, CRITERIA, SENSITIVITY, criteria, sensitivity
from msda_bench.results.criteria_text import criteria_notes
from msda_bench.results.door import Kind, argument
from msda_bench.results.experiment_tables import View, views
from msda_bench.results.files import replace_file, result_files
from msda_bench.results.frame import AVERAGE, CURVES, RUNS, runs_of
from msda_bench.results.leaderboard import LEADERBOARD, Analysis, analyse
from msda_bench.results.notes import note_lines, notes, problem_lines, problems
from msda_bench.results.predictions import PER_CLASS, per_class
from msda_bench.results.report import mean_text, show_p
from msda_bench.results.rows import (
    against,
    best_of,
    conclusive,
    control_of,
    differ,
    main_pairs,
    main_rows,
    testable,
    turned_pairs,
)
from msda_bench.results.select import select
from msda_bench.results.serialize import csv_text
from msda_bench.results.verdict import too_few_datasets
from msda_bench.results.verify import verifications
from msda_bench.results.verify_text import disagreement
from msda_bench.results.words import counted, listed, name_of
from msda_bench.suite.mistakes import hint, shown
from msda_bench.suite.plan import DEFAULT_MEASURES, ORACLE, Experiment, Measure

KINDS: Mapping[str, Kind] = MappingProxyType(
    {kind.parameter: kind for kind in (COMPARISONS, CRITERIA, CURVES, LEADERBOARD, PER_CLASS, RUNS, SENSITIVITY)}
)
"""What takes a frame, or a folder that has it, by the name of the parameter, such as `leaderboard`."""

__all__ = [
    "ALL",
    "AVERAGE",
    "DEFAULT_MEASURES",
    "KINDS",
    "ORACLE",
    "Across",
    "Analysis",
    "Experiment",
    "Measure",
    "View",
    "across_of",
    "across_tables",
    "against",
    "analyse",
    "argument",
    "best_of",
    "conclusive",
    "control_of",
    "counted",
    "criteria",
    "criteria_notes",
    "csv_text",
    "differ",
    "disagreement",
    "hint",
    "listed",
    "main_pairs",
    "main_rows",
    "mean_text",
    "name_of",
    "note_lines",
    "notes",
    "per_class",
    "problem_lines",
    "problems",
    "replace_file",
    "result_files",
    "runs_of",
    "select",
    "sensitivity",
    "show_p",
    "shown",
    "standings",
    "testable",
    "too_few_datasets",
    "turned_pairs",
    "verifications",
    "views",
]
