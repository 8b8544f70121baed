"""docs/notebooks/results.ipynb runs verbatim, shows what it describes, and keeps what it shows."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "notebooks" / "results.ipynb"


@pytest.mark.filterwarnings("default")  # the kernel's own packages warn of one another
def test_the_notebook_runs_and_shows_table_charts_and_test():
    nbclient = pytest.importorskip("nbclient", reason="nbclient and ipykernel are in the extra `test`")
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.read(NOTEBOOK, as_version=4)
    kept = _outputs(book)
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    shown = _outputs(book)
    assert [data["text/plain"] for data in kept] == [data["text/plain"] for data in shown], "run it anew and save it"
    assert sum("image/png" in data for data in kept) == 2, "charts are kept as pictures, which need no network"
    assert sum("vegaEmbed" in data.get("text/html", "") for data in shown) == 2
    board = csv.DictReader((ROOT / "results" / "paper-amazon" / "leaderboard.csv").read_text().splitlines())
    (best,) = [row for row in board if row["target"] == "average" and row["rank"] == "1"]
    assert any(f"{float(best['mean']):.2f}" in data.get("text/html", "") for data in shown)
    assert shown[-1]["text/plain"] == "(9.5367431640625e-07, 20, 0)", "all twenty are positive: 2^-20"


def _outputs(book: Any) -> list[dict[str, Any]]:
    """What the cells of a notebook show, by MIME type."""
    return [output["data"] for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
