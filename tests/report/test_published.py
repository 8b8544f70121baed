from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from msda_bench.report.csv_text import csv_text
from msda_bench.report.published import print_verifications
from msda_bench.report.verdict import verdict
from msda_bench.report.verify_rows import COLUMNS, verify_csv, verify_json
from msda_bench.stats.verify import verify
from msda_bench.store.record import Outcome
from msda_bench.suite.published.table import Citation, PublishedCell, PublishedRow, PublishedTable

LEVEL = {"SRC": 316, "DANN": 318, "DARN": 325, "NEW": 390, "ref": 340}  # of 400
CITATION = Citation(("A. Author", "B. Author"), "A paper of two tables", "Proceedings 2020", "https://example.org/1")


def cells(*values: tuple[float, float, str]) -> tuple[PublishedCell, ...]:
    columns = ("x", "y", None)
    return tuple(
        PublishedCell(column, mean, error, mark == "*")
        for column, (mean, error, mark) in zip(columns, values, strict=True)
    )


TABLE = PublishedTable(
    "mine",
    CITATION,
    "Table 1",
    "toy",
    "accuracy_percent",
    20,
    (
        PublishedRow("SRC", reference=False, cells=cells((79.1, 0.3, ""), (80.5, 0.3, "*"), (79.8, 0.2, ""))),
        PublishedRow("DANN", reference=False, cells=cells((79.0, 0.3, ""), (80.4, 0.3, ""), (79.7, 0.2, ""))),
        PublishedRow("DARN", reference=False, cells=cells((81.6, 0.2, "*"), (81.3, 0.2, "*"), (81.45, 0.1, "*"))),
        PublishedRow("ref", reference=True, cells=cells((86.0, 0.1, ""), (84.0, 0.1, ""), (85.0, 0.1, ""))),
    ),
)
WITH_ABSENT = replace(
    TABLE,
    rows=(
        *TABLE.rows,
        PublishedRow("OLD", reference=False, cells=cells((70.0, 1.0, ""), (71.0, 1.0, ""), (70.5, 1.0, ""))),
    ),
)


def made(name: str, target: str, seed: int) -> Outcome:
    shift = (7 * seed + 3 * len(name) + (target == "y")) % 8
    return Outcome(400, n_correct=LEVEL[name] + shift + 2 * (target == "y"))


def with_gaps(name: str, target: str, seed: int) -> Outcome | str | None:
    if (name, target, seed) == ("SRC", "x", 2):
        return "diverged: loss is nan in epoch 3"
    if name == "DANN" and seed > 0:
        return None
    return made(name, target, seed)


@pytest.fixture
def verified(make_sample):
    """`verified(table, make, ...)`: a toy experiment held to a table."""

    def run(table=TABLE, make=made, methods=("SRC", "DANN", "DARN", "ref"), **more):
        plan, records = make_sample(make, methods, **more)
        plan = replace(plan, experiments=(replace(plan.experiments[0], published=table, notes=("Toy data.",)),))
        return verify(plan, records)

    return run


def test_golden_plain_text_where_all_is_there(verified, golden, printed):
    golden("verify.txt", printed(print_verifications, verified(seeds=8), []))


def test_golden_plain_text_where_much_is_missing(verified, golden, printed):
    found = verified(WITH_ABSENT, with_gaps, ("SRC", "DANN", "DARN", "NEW", "ref"), targets=("x", "y", "z"), seeds=8)
    golden("verify-gaps.txt", printed(print_verifications, found, ["other"]))


def test_golden_csv(verified, golden):
    found = verified(WITH_ABSENT, with_gaps, seeds=8)
    golden("verify.csv", verify_csv("made", found))


def test_golden_json(verified, golden):
    found = verified(WITH_ABSENT, with_gaps, seeds=8)
    whole = verify_json("made", found, ["other"])
    whole["experiments"][0]["rows"] = "those of verify.csv"
    golden("verify.json", json.dumps(whole, indent=1, allow_nan=False) + "\n")


def test_json_has_the_rows_of_the_csv_and_the_printed_verdict(verified, printed):
    found = verified(seeds=8)
    (experiment,) = verify_json("made", found, [])["experiments"]
    assert all(tuple(row) == COLUMNS for row in experiment["rows"])
    assert csv_text(COLUMNS, experiment["rows"]) == verify_csv("made", found)
    assert printed(print_verifications, found, []).splitlines()[-1] == f"verdict: {experiment['verdict']}"


def test_the_verdict_is_one_line_however_narrow_the_console(verified, printed):
    text = printed(print_verifications, verified(seeds=8), [], width=40)
    assert len([line for line in text.splitlines() if line.startswith("verdict: ")]) == 1
    assert text.endswith(f"verdict: {verdict(verified(seeds=8)[0])}\n")


def test_on_a_terminal_bold_is_bold(verified, printed):
    text = printed(print_verifications, verified(seeds=8), [], terminal=True)
    row = next(line for line in text.splitlines() if line.startswith("DARN"))
    assert len(re.findall(r"\x1b\[1m *\d\d\.\d\d ± \d\.\d\d\x1b\[0m", row)) == 2
    assert "*" not in text
    assert "bold: the bold set" in " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({}, "bold sets equal in 2 of 3 columns"),
        ({"seeds": 3}, "bold sets cannot be told"),
        ({"methods": ("SRC",), "table": TABLE}, "order of methods cannot be told"),
        ({"methods": ("NEW",)}, "0 of 8 cells within 2 standard errors; "),
        ({"make": with_gaps}, "incomplete (15 of 64 runs are not ok): averages"),
        (
            {"methods": ("SRC", "DARN", "ref"), "targets": ("x",)},
            "incomplete (the suite lacks DANN, target y): averages",
        ),
    ],
)
def test_what_the_verdict_says(verified, change, part):
    (found,) = verified(**{"seeds": 8, **change})
    assert part in verdict(found)


def test_a_table_without_bold(verified):
    rows = tuple(replace(row, cells=tuple(replace(cell, bold=False) for cell in row.cells)) for row in TABLE.rows)
    (found,) = verified(replace(TABLE, rows=rows), seeds=8)
    assert "; the table has no bold; " in verdict(found)
