"""docs/notebooks/results.ipynb runs verbatim and shows what it describes."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "notebooks" / "results.ipynb"


@pytest.mark.filterwarnings("default")  # the kernel's own packages warn of one another
def test_the_notebook_runs_and_shows_table_charts_and_test():
    nbclient = pytest.importorskip("nbclient", reason="nbclient and ipykernel are in the extra `test`")
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells), "it is kept without outputs"
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    shown = [
        output["data"] for cell in book.cells if cell.cell_type == "code" for output in cell.outputs if "data" in output
    ]
    assert sum("vegaEmbed" in data.get("text/html", "") for data in shown) == 2
    board = csv.DictReader((ROOT / "results" / "paper-amazon" / "leaderboard.csv").read_text().splitlines())
    (best,) = [row for row in board if row["target"] == "average" and row["rank"] == "1"]
    assert any(f"{float(best['mean']):.2f}" in data.get("text/html", "") for data in shown)
    assert shown[-1]["text/plain"] == "(9.5367431640625e-07, 20, 0)", "all twenty are positive: 2^-20"
