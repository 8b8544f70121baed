"""The table of the page on datasets is what was measured, and the measures find what was put into made rows."""

import csv

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from msda_bench.api import DomainData
from tests.reader import table, text_of

pytest.importorskip("sklearn")
import worth
from forensic import DATASETS, MEASURED, measure
from worth import MEASURED as WORTH

PAGE = text_of("docs/datasets.md")
FORMS = {"rows": ",d"} | dict.fromkeys(("copies", "elsewhere", "contradicting"), ".1f")

IN_TEXT = {
    "constant": ("has columns that are constant in one domain alone", ","),
    "lacking": ("domains without some class", "."),
}
"""What only one dataset has: how the page says it."""


def test_the_table_of_the_page_is_the_measurement():
    with MEASURED.open(newline="") as file:
        measured = {row.pop("dataset"): row for row in csv.DictReader(file)}
    assert list(measured) == list(DATASETS)
    in_text = {column: {name: int(row.pop(column)) for name, row in measured.items()} for column in IN_TEXT}
    for column, (before, after) in IN_TEXT.items():
        ((name, number),) = [(name, number) for name, number in in_text[column].items() if number]
        assert f"nly `{name}` {before} ({number}){after}" in PAGE, column
    _, *rows = table(PAGE, "| domain by size |")
    written = {name: cells for name, *cells in rows}
    for name, row in measured.items():
        values = {
            column: int(text) if FORMS.get(column, "")[-1:] == "d" else float(text) for column, text in row.items()
        }
        assert written.pop(name) == [format(value, FORMS.get(column, "+.1f")) for column, value in values.items()], name
    assert not written


def test_tables_of_what_flaws_are_worth_are_the_measurement():
    with WORTH.open(newline="") as file:
        measured = list(csv.DictReader(file))
    changes, own = {}, []
    for row in measured:
        change = f"{float(row['change']):+.1f} ({float(row['error']):.1f})"
        if row["method"] == "own labels":
            own.append(
                [row["dataset"], row["mend"], f"{float(row['with']):.1f}", f"{float(row['without']):.1f}", change]
            )
        else:
            changes.setdefault((row["dataset"], row["mend"]), {})[row["method"]] = change
    methods = ("SRC", "logistic", "MCC", "TAR")
    wanted = [[*of, *(cells.get(method, "") for method in methods)] for of, cells in changes.items()]
    assert table(PAGE, "| dataset | option | SRC | logistic | MCC | TAR |")[1:] == wanted
    notes = text_of("studies/datasets/README.md")
    of_target = changes["amazon", "duplicates: drop"]["TAR"]
    assert f"Copies are worth {of_target} points to TAR" in notes
    assert table(notes, "| dataset | in its place | with the flaw | without | change |")[1:] == own


def test_own_labels_measure_what_order_and_groups_are_worth():
    draw = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    x = (draw.normal(size=(400, 4)) + 3 * y[:, None]).astype(np.float32)
    sorted_rows = worth.by_place("made", {"a": DomainData(x, y)})
    assert sorted_rows["with"] < 1
    assert sorted_rows["without"] > 95
    kinds = np.arange(40) % 2
    groups = np.repeat(np.arange(40), 10)  # of which each has inputs of its own, and a class that these do not tell
    inputs = np.eye(40, dtype=np.float32)[groups]
    grouped = worth.by_group("made", {"a": DomainData(inputs, kinds[groups], groups=groups)})
    assert grouped["with"] == pytest.approx(100)
    assert grouped["without"] < 75
    assert grouped["change"] == pytest.approx(grouped["without"] - grouped["with"])


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
