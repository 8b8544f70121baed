"""Conversion of frames to text: formats, marks, widths and hostile text."""

import csv
import io
import re

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from msda_bench.results.experiment_tables import leaderboard_table, views
from msda_bench.results.leaderboard import analyse
from msda_bench.results.report import Column, Table
from msda_bench.results.tables import csv_text, latex_text, markdown_text, render
from msda_bench.store.record import Outcome
from tests.results.conftest import many

HOSTILE = "=1|b_{x}%&#$~^\\ <script>\x1b[31m\u202e"


def shown(runs):
    table = leaderboard_table(next(views(analyse(runs))))
    return render(table), table


@settings(max_examples=40)
@given(st.text())
def test_any_text_round_trips_through_csv_printable_and_without_formulas(text):
    columns = {"a": [text], "b": pd.array([True], "boolean"), "c": pd.array([None], "Int64"), "d": [1 / 3], "e": [None]}
    written = csv_text(pd.DataFrame(columns))
    header, row = csv.reader(io.StringIO(written, newline=""))
    assert (header, row[1:]) == ([*"abcde"], ["true", "", "0.333333", ""])
    assert row[0].isprintable()
    assert not row[0].startswith(("=", "+", "-", "@"))
    if text.isprintable():
        assert row[0] in {" ".join(text.split()), "'" + " ".join(text.split())}


def test_beyond_six_methods_marks_and_tests_are_against_the_baseline(table):
    text, board = shown(table(many(7), baseline="b"))
    marks = {line.split()[0]: line[-1] for line in text.splitlines()[2:]}
    assert marks.pop("b").isdigit()
    assert marks == {"a": "!"} | dict.fromkeys("cdefg", "*")
    assert board.notes[0].startswith("*: significantly better than b; !: significantly worse than b (")
    assert "Holm's correction over the 6 comparisons with b" in board.notes[0]
    # 2 / 2^8 times the 6 tests against b, not all 21
    better, worse = (re.sub(r" [+-]\S+ \[[^]]*\]", "", line) for line in board.verdict[:2])
    assert better == "5 of 6 methods gain over b: g, f, e, d and c points."
    assert worse == "Worse than b: a."
    _, board = shown(table(many(7), baseline="b", primary=("c", "d")))
    family = "over the 2 primary comparisons with b, Benjamini and Hochberg's over the 4 exploratory ones)."
    assert board.notes[0].endswith(f"Holm's correction {family}")


def test_wide_tables_are_split_and_show_every_cell_once(table):
    targets = [f"target-number-{i}" for i in range(12)]
    runs = {name: {target: [Outcome(200, n_correct=100 + i)] * 2 for target in targets} for i, name in enumerate("ab")}
    text, _ = shown(table(runs))
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("target-number-") == 12
    assert text.splitlines()[-4].split()[-1] == "average"


def test_hostile_text_is_escaped_in_each_language():
    rows = pd.DataFrame({"method": ["[x]", "ok"], "a": [1.0, 2.0]})
    columns = (Column("method", "text", ["method"]), Column("a|b_{", "number", ["a"]))
    table = Table("t", HOSTILE, rows, columns, notes=(HOSTILE,))
    tex = latex_text(table)
    plain = re.sub(r"\\[{}%&#$_]", "", tex)
    assert plain.count("{") == plain.count("}")
    assert r"\{x\}\%\&\#\$\textasciitilde{}\textasciicircum{}\textbackslash{}" in tex
    assert re.search(r"^ *\{\}\[x\]", tex, re.MULTILINE)  # LaTeX would read [ after the end of a row as an option
    assert "<script>" not in markdown_text(table).replace(r"\<script\>", "")
    assert r"a\|b\_{" in markdown_text(table)
    assert r"a\textbar{}b\_\{" in tex
