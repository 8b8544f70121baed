"""The tables that come with the package, held to what can be known of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from msda_bench.suite.load import load_suite
from msda_bench.suite.published.load import find_table

SUITES = Path(__file__).parents[3] / "suites"
METHODS = ("SRC", "DANN", "MDAN", "MDMN", "DARN", "TAR")


def text_of_paper() -> str:
    papers = list((Path(os.environ.get("MSDA_BENCH_DATA", "nowhere")).parent / "paper").glob("*.txt"))
    if not papers:
        pytest.skip("the paper's LaTeX is not beside the data")
    return papers[0].read_text(encoding="utf-8").replace(r"\shortname", "DARN")


PAPER = ("darn-2020-amazon", "darn-2020-digits")


@pytest.mark.parametrize("name", PAPER)
def test_a_table_agrees_with_itself(name):
    table = find_table(name)
    assert table.name == name
    for row in table.rows:
        *targets, average = row.cells
        mean = sum(cell.mean for cell in targets) / len(targets)
        assert abs(mean - average.mean) < 0.01 + 1e-9, row.method  # each printed number is off by up to 0.005
        errors = [cell.standard_error for cell in targets]
        assert min(errors) / len(errors) < average.standard_error <= max(errors)
    ranked = [row for row in table.rows if not row.reference]
    for index in range(len(table.targets) + 1):
        best = max(ranked, key=lambda row: row.cells[index].mean)
        assert best.cells[index].bold
        distinguished = [row for row in ranked if not row.cells[index].bold]
        assert all(row.cells[index].mean < best.cells[index].mean for row in distinguished)


@pytest.mark.parametrize("name", PAPER)
def test_both_have_the_methods_and_runs_of_the_paper(name):
    table = find_table(name)
    assert tuple(row.method for row in table.rows) == METHODS
    assert [row.method for row in table.rows if row.reference] == ["TAR"]
    assert (table.runs, len(table.targets)) == (20, 4)


@pytest.mark.parametrize(("name", "label"), [("darn-2020-amazon", "tab:amazon"), ("darn-2020-digits", "tab:digits")])
def test_every_number_and_bold_mark_is_the_papers(name, label):
    lines = text_of_paper().split(rf"\label{{{label}}}")[1].split(r"\end{tabular}")[0].splitlines()
    printed = {}
    for line in lines:
        method, *cells = line.split(" & ")
        if method in METHODS:
            found = [re.fullmatch(r"(\\textbf\{)?([\d.]+)\}? \{\\tiny \$\\pm\$ ([\d.]+)\}.*", cell) for cell in cells]
            printed[method] = [(float(cell[2]), float(cell[3]), cell[1] is not None) for cell in found]
    ours = {
        row.method: [(cell.mean, cell.standard_error, cell.bold) for cell in row.cells] for row in find_table(name).rows
    }
    assert ours == printed


def test_the_suite_of_the_paper_names_its_table():
    from msda_bench.plugins import discover

    suite = load_suite(SUITES / "paper-amazon.yaml", discover())
    assert suite.experiments[0].published == find_table("darn-2020-amazon")
