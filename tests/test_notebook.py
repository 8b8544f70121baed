"""docs/notebooks/results.ipynb runs verbatim and shows what it describes."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "docs" / "notebooks" / "results.ipynb"


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
    assert any("83.83" in data.get("text/html", "") for data in shown)
    assert shown[-1]["text/plain"] == "(0.0009765625, 10, 0)", "all ten differences are positive: 2^-10"
