"""Writes the tables of a result folder; identical records give identical bytes, in any order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from msda_bench.atomic import make_folder, named, read_file, write
from msda_bench.errors import BenchError
from msda_bench.results.across import Across, standings
from msda_bench.results.compare import COLUMNS as COMPARED
from msda_bench.results.experiment_tables import (
    View,
    across_tables,
    leaderboard_table,
    pairs_notes,
    pairs_tables,
    summary_table,
    views,
)
from msda_bench.results.leaderboard import Analysis
from msda_bench.results.notes import note_lines, problems
from msda_bench.results.serialize import csv_text, rows_of
from msda_bench.results.tables import Table, latex_file, markdown_text
from msda_bench.results.verdict import verdict_across
from msda_bench.store.store import PLAN

RUNS = "runs.csv"
LEADERBOARD = "leaderboard.csv"
COMPARISONS = "comparisons.csv"
MARKDOWN = "tables.md"
LATEX = "tables"
JSON_SCHEMA = 2
"""Version of the layout of the JSON documents."""

_TIMES = ("train_seconds", "stack")


def write_results(folder: Path, analysis: Analysis) -> None:
    """Writes runs.csv, leaderboard.csv, comparisons.csv, tables.md and tables/*.tex, each completely or not at all.

    Writes runs.parquet, too, if pyarrow is installed.

    Raises:
        StoreError: the folder cannot be written.
    """
    with named(folder / LATEX, "cannot be made"):
        make_folder(folder / LATEX)
    made = {name: text.encode() for name, text in result_files(analysis).items()}
    if find_spec("pyarrow") is not None:
        data = BytesIO()
        runs = analysis.runs.copy()
        runs.attrs = {}  # the plan is in plan.json
        runs.to_parquet(data, index=False)
        made["runs.parquet"] = data.getvalue()
    for name, content in made.items():
        replace_file(folder / name, content)


def result_files(analysis: Analysis) -> dict[str, str]:
    """The contents of the text files of `write_results`, by name.

    runs.csv omits the time and the stack of a run, which depend on the order of execution; `load_results` returns them.
    """
    shown = list(_tables(analysis))
    return {
        RUNS: csv_text(analysis.runs.drop(columns=list(_TIMES))),
        LEADERBOARD: csv_text(analysis.leaderboard),
        COMPARISONS: csv_text(analysis.comparisons),
        MARKDOWN: "\n\n".join(markdown_text(table) for table in shown) + "\n",
        **{f"{LATEX}/{table.name}.tex": latex_file(table) for table in shown},
    }


def replace_file(path: Path, data: bytes) -> None:
    """Writes a file completely or not at all, replacing an existing one unless it has these bytes already.

    Raises:
        StoreError: it cannot be written.
    """
    with contextlib.suppress(OSError):
        if read_file(path, len(data)) == data:
            return
    with named(path, "cannot be written, what was there before is intact"):
        write(path, data)


def refuse_result_folders(out: Path, *inner: str) -> None:
    """Refuses to write into a folder, or into folders of these names in it, that are result folders or lie in one.

    Raises:
        BenchError: one line names the result folder.
    """
    for folder in (out, *(out / name for name in inner)):
        place = folder.resolve()
        taken = next((parent for parent in (place, *place.parents) if (parent / PLAN).exists()), None)
        if taken is not None:
            why = f"would write into the result folder {taken}, whose files stay as they are"
            raise BenchError(f"--out {out}: {why}; name a folder outside of it")


def tables_json(
    command: Literal["leaderboard", "compare", "run"],
    folders: Iterable[Path],
    analysis: Analysis,
    faults: Sequence[str],
) -> dict[str, Any]:
    """The tables of a result folder as plain JSON values; docs/results.md explains the keys."""
    found = [_experiment(command, analysis, view) for view in views(analysis)]
    return {
        "schema": JSON_SCHEMA,
        "command": command,
        "folders": [str(folder) for folder in folders],
        "suite": analysis.runs.attrs["plan"].suite,
        "complete": not faults and not any(experiment["problems"] for experiment in found),
        "experiments": found,
        "faults": list(faults),
    }


def across_json(folder: Path, across: Across, by: str | None) -> dict[str, Any]:
    """The comparison of methods across datasets as plain JSON values; docs/json.md explains the keys.

    `by` is the criterion that selects settings instead of the suite's own; None if there is no other.
    """
    return {
        "schema": JSON_SCHEMA,
        "command": "compare",
        "folders": [str(folder)],
        "datasets": list(across.datasets),
        "experiments": list(across.experiments),
        "baseline": across.baseline,
        "alpha": across.alpha,
        "by": by,
        "verdict": list(verdict_across(across)),
        "groups": [list(group) for group in across.cliques] if across.separates else [],
        "left_out": list(across.skipped),
        "methods": rows_of(standings(across)),
        "pairs": rows_of(pd.DataFrame(across.rows, columns=COMPARED)),
    }


def _tables(analysis: Analysis) -> Iterator[Table]:
    """The leaderboard, averages and average pairs of each experiment, then the tables across datasets."""
    for view in views(analysis):
        yield leaderboard_table(view)
        yield summary_table(view)
        main = f"{view.experiment.name}-pairs"
        yield from (replace(table, notes=pairs_notes(view)[:1]) for table in pairs_tables(view) if table.name == main)
    yield from across_tables(analysis.across)


def _experiment(command: str, analysis: Analysis, view: View) -> dict[str, Any]:
    experiment = view.experiment
    known = {method.name: method for method in experiment.methods}
    bad = rows_of(problems(view.runs))
    return {
        "experiment": experiment.name,
        "dataset": experiment.dataset,
        "task": experiment.task,
        "metric": view.board["metric"].iloc[0],
        "alpha": experiment.alpha,
        "targets": list(dict.fromkeys(view.runs["target"])),
        "seeds": list(dict.fromkeys(view.runs["seed"].tolist())),
        "methods": [
            {"method": name} | {key: getattr(known[name], key) for key in ("reference", "recipe", "distributions")}
            for name in dict.fromkeys(view.runs["method"])
        ],
        "verdict": list(view.verdict),
        "rows": rows_of(view.pairs if command == "compare" else view.board),
        "notes": note_lines(analysis.runs).get(experiment.name, []),
        "problems": [
            {key: row[key] for key in ("method", "status", "runs", "planned")}
            | {"first": {"target": row["target"], "seed": row["seed"]}, "message": row["message"]}
            for row in bad
        ],
    }
