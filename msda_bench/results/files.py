"""Writes the tables of a result folder; identical records give identical bytes, in any order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from msda_bench.atomic import named, read_file, write
from msda_bench.errors import BenchError
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
from msda_bench.results.notes import folder_lines
from msda_bench.results.tables import csv_text, latex_text, markdown_list, markdown_text
from msda_bench.store.store import PLAN

RUNS = "runs.csv"
LEADERBOARD = "leaderboard.csv"
COMPARISONS = "comparisons.csv"
MARKDOWN = "tables.md"
LATEX = "tables.tex"
_WRITTEN = "% Written by msda-bench, which writes it anew after each run. In the preamble: \\usepackage{booktabs}"

_NOT_KEPT = ("train_seconds", "stack", "n_train")


def write_results(folder: Path, analysis: Analysis, shown: Sequence[View] | None = None) -> None:
    """Writes runs.csv, leaderboard.csv, comparisons.csv, tables.md and tables.tex, each completely or not at all.

    `shown` are the views of the analysis, if they are known.

    Raises:
        StoreError: the folder cannot be written.
    """
    for name, text in result_files(analysis, shown).items():
        replace_file(folder / name, text.encode())


def result_files(analysis: Analysis, shown: Sequence[View] | None = None) -> dict[str, str]:
    """The contents of the text files of `write_results`, by name."""
    if shown is None:
        shown = tuple(views(analysis))
    return {RUNS: runs_file(analysis), **table_files(analysis, shown)}


def runs_file(analysis: Analysis) -> str:
    """runs.csv, without what depends on the order of execution, such as times, and `n_train`, which the cells have."""
    kept = analysis.runs.drop(columns=list(_NOT_KEPT))
    # Recorded files have this column of a selection that is gone, always empty.
    kept.insert([*kept].index("key"), "left_out", None)
    return csv_text(kept)


def table_files(analysis: Analysis, shown: Iterable[View]) -> dict[str, str]:
    """The other text files of `write_results`."""
    tables = []
    for view in shown:
        tables += [leaderboard_table(view), summary_table(view)]
        notes = pairs_notes(view)[:1]
        for table in pairs_tables(view):
            if table.name == f"{view.experiment.name}-pairs":
                tables.append(replace(table, notes=notes))
    tables += across_tables(analysis.across)
    texts = [markdown_text(table) for table in tables]
    lines = list(folder_lines(analysis.selected, noted=analysis.notes))
    if lines:
        texts.append(f"### Notes\n\n{markdown_list(lines)}")
    return {
        LEADERBOARD: csv_text(analysis.leaderboard),
        COMPARISONS: csv_text(analysis.comparisons),
        MARKDOWN: "\n\n".join(texts) + "\n",
        LATEX: "\n\n".join((_WRITTEN, *map(latex_text, tables))) + "\n",
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


def refuse_result_folders(out: Path, *inner: str, what: str = "--out") -> None:
    """Refuses to write into a folder, or into folders of these names in it, that are result folders or lie in one.

    `what` is the argument that names the folder.

    Raises:
        BenchError: one line names the result folder.
    """
    for folder in (out, *(out / name for name in inner)):
        place = folder.resolve()
        taken = next((parent for parent in (place, *place.parents) if (parent / PLAN).exists()), None)
        if taken is not None:
            why = f"would write into the result folder {taken}, whose files stay as they are"
            raise BenchError(f"{what} {out}: {why}; name a folder outside of it")
