"""The table of the page on datasets is what was measured, and the measures find what was put into made rows."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from msda_bench.api import DomainData

pytest.importorskip("sklearn")
from forensic import DATASETS, MEASURED, measure

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8")
FORMS = {"rows": ",d", "constant": "d", "lacking": "d"} | dict.fromkeys(("copies", "elsewhere", "contradicting"), ".1f")


def test_the_table_of_the_page_is_the_measurement():
    with MEASURED.open(newline="", encoding="utf-8") as file:
        measured = {row.pop("dataset"): row for row in csv.DictReader(file)}
    assert list(measured) == list(DATASETS)
    table = PAGE.split("| domain by size |\n")[1].split("\n\n")[0]
    written = {name: cells.split(" | ") for name, cells in re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)}
    for name, row in measured.items():
        values = {
            column: int(text) if FORMS.get(column, "")[-1:] == "d" else float(text) for column, text in row.items()
        }
        assert written.pop(name) == [format(value, FORMS.get(column, "+.1f")) for column, value in values.items()], name
    assert not written


def test_measures_find_what_made_rows_have():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(200, 3)).astype(np.float32)
    y = np.repeat([0, 1], 100)  # class by class
    x[y == 1] *= 4  # and told by its size
    x[:, 1] = 1  # constant in one domain alone
    x[10:20] = x[0:10]  # ten copies
    x[150] = x[5]  # of two labels, with the one that is copied and its copy
    other = draw.normal(size=(100, 3)).astype(np.float32)
    other[0] = x[50]
    found = measure({"a": DomainData(x, y), "b": DomainData(other, np.zeros(100, int))}, classes=2)
    assert (found["rows"], found["constant"], found["lacking"]) == (300, 1, 1)
    assert found["copies"] == pytest.approx(100 * 11 / 300)
    assert found["elsewhere"] == pytest.approx(100 * 2 / 300)
    assert found["contradicting"] == pytest.approx(100 * 3 / 300)
    assert found["neighbours"] == pytest.approx(100 * (198 / 199 - 0.5) / 2)
    assert found["class_by_place"] == pytest.approx(50 / 2, abs=1)
    assert found["class_by_size"] > 10
    bags = {"a": DomainData(csr_matrix(np.eye(12, 3, dtype=np.float32)), np.arange(12) % 2)}
    assert measure(bags, classes=2)["copies"] == pytest.approx(100 * 8 / 12)
