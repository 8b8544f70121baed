"""What a run would do, for `run --dry-run`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from msda_bench.running.survey import Survey

SURVEY_SCHEMA = 1
"""Version of the layout of `run --dry-run --json`."""


def print_survey(survey: Survey, folder: Path) -> None:
    """Prints, for each method, how many of its selected cells are stored and how many would be trained."""
    table = Table("experiment", "method", box=None, pad_edge=False)
    table.add_column("stored", justify="right")
    table.add_column("to train", justify="right")
    for experiment, method, stored, missing in _rows(survey):
        table.add_row(Text(experiment), Text(method), str(stored), str(missing))
    console = Console(soft_wrap=True)
    console.print(table)
    left_out = len({cell.key for cell in survey.selected if cell.left_out is not None} & survey.missing.keys())
    of_them = f" ({left_out} of them to leave one source out)" if left_out else ""
    beyond = f", {survey.left} left by --limit" if survey.left else ""
    line = (
        f"{folder}: {survey.stored} cells stored, {len(survey.missing)} to train{of_them}{beyond}; nothing was changed"
    )
    console.print(Text(line))


def survey_json(survey: Survey, folder: Path) -> dict[str, Any]:
    """The same as plain JSON values."""
    return {
        "schema": SURVEY_SCHEMA,
        "command": "run",
        "dry_run": True,
        "folder": str(folder),
        "suite": survey.plan.suite,
        "stored": survey.stored,
        "to_train": len(survey.missing),
        "left": survey.left,
        "methods": [
            {"experiment": experiment, "method": method, "stored": stored, "to_train": missing}
            for experiment, method, stored, missing in _rows(survey)
        ],
    }


def _rows(survey: Survey) -> Iterator[tuple[str, str, int, int]]:
    """Experiment, method, cells stored, cells to train."""
    missing = Counter((cell.experiment, cell.method) for cell in survey.selected if cell.key in survey.missing)
    selected = Counter((cell.experiment, cell.method) for cell in survey.selected)
    for row, count in selected.items():
        yield *row, count - missing[row], missing[row]
