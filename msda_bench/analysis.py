"""Everything that charts, pages and other ways to show results import; like `msda_bench.api` it is kept stable."""

from msda_bench.atomic import cache_folder, make_folder, named, read_cache, write_cache
from msda_bench.errors import BenchError, printable
from msda_bench.loading import Brought, brought
from msda_bench.plugins import Registry, discover
from msda_bench.results.across import METRIC, Across, across_datasets, across_of, standings
from msda_bench.results.compare import COMPARISONS
from msda_bench.results.criteria import ALL, CRITERIA, SENSITIVITY, criteria, sensitivity
from msda_bench.results.criteria_text import criteria_notes
from msda_bench.results.decision import MIN_PAIRS_ACROSS
from msda_bench.results.door import Kind, argument
from msda_bench.results.experiment_tables import View, across_tables, views
from msda_bench.results.files import refuse_result_folders, replace_file, result_files
from msda_bench.results.frame import AVERAGE, CURVES, PROBLEMS, RUNS, load_curves, load_results, own_rows, runs_of
from msda_bench.results.leaderboard import LEADERBOARD, Analysis, analyse
from msda_bench.results.notes import environments, note_lines, notes, problem_lines, problems
from msda_bench.results.predictions import PER_CLASS, load_confusion, per_class
from msda_bench.results.recorded import load_cells
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
from msda_bench.results.scores import Grid, grids
from msda_bench.results.select import select
from msda_bench.results.serialize import csv_text, rows_of
from msda_bench.results.verdict import by_count, by_rank, too_few_datasets
from msda_bench.results.verify import verifications
from msda_bench.results.verify_text import disagreement
from msda_bench.results.words import counted, listed, name_of, spans
from msda_bench.store.store import Store
from msda_bench.suite.mistakes import hint, shown
from msda_bench.suite.plan import DEFAULT_MEASURES, ORACLE, Experiment, Measure

__all__ = [
    "ALL",
    "AVERAGE",
    "COMPARISONS",
    "CRITERIA",
    "CURVES",
    "DEFAULT_MEASURES",
    "LEADERBOARD",
    "METRIC",
    "MIN_PAIRS_ACROSS",
    "ORACLE",
    "PER_CLASS",
    "PROBLEMS",
    "RUNS",
    "SENSITIVITY",
    "Across",
    "Analysis",
    "BenchError",
    "Brought",
    "Experiment",
    "Grid",
    "Kind",
    "Measure",
    "Registry",
    "Store",
    "View",
    "across_datasets",
    "across_of",
    "across_tables",
    "against",
    "analyse",
    "argument",
    "best_of",
    "brought",
    "by_count",
    "by_rank",
    "cache_folder",
    "conclusive",
    "control_of",
    "counted",
    "criteria",
    "criteria_notes",
    "csv_text",
    "differ",
    "disagreement",
    "discover",
    "environments",
    "grids",
    "hint",
    "listed",
    "load_cells",
    "load_confusion",
    "load_curves",
    "load_results",
    "main_pairs",
    "main_rows",
    "make_folder",
    "mean_text",
    "name_of",
    "named",
    "note_lines",
    "notes",
    "own_rows",
    "per_class",
    "printable",
    "problem_lines",
    "problems",
    "read_cache",
    "refuse_result_folders",
    "replace_file",
    "result_files",
    "rows_of",
    "runs_of",
    "select",
    "sensitivity",
    "show_p",
    "shown",
    "spans",
    "standings",
    "testable",
    "too_few_datasets",
    "turned_pairs",
    "verifications",
    "views",
    "write_cache",
]
