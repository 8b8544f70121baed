"""What a run would do, for `run --dry-run`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from msda_bench.run.survey import Survey


def print_survey(survey: Survey, folder: Path) -> None:
    """Prints, for each method, how many of its selected cells are stored and how many would be trained."""
    rows = dict.fromkeys((cell.experiment, cell.method) for cell in survey.selected)
    missing = Counter((cell.experiment, cell.method) for cell in survey.selected if cell.key in survey.missing)
    selected = Counter((cell.experiment, cell.method) for cell in survey.selected)
    table = Table("experiment", "method", box=None, pad_edge=False)
    table.add_column("stored", justify="right")
    table.add_column("to train", justify="right")
    for row in rows:
        table.add_row(*map(Text, row), str(selected[row] - missing[row]), str(missing[row]))
    console = Console(soft_wrap=True)
    console.print(table)
    beyond = f", {survey.left} left by --limit" if survey.left else ""
    line = f"{folder}: {survey.stored} cells stored, {len(survey.missing)} to train{beyond}; nothing was changed"
    console.print(Text(line))
