"""Conversion of frames to text: formats, marks, widths and hostile text."""

from __future__ import annotations

import csv
import io
import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.results.experiment_tables import leaderboard_table, pairs_tables, views
from msda_bench.results.leaderboard import analyse
from msda_bench.results.report import Column, Table, Unit
from msda_bench.results.serialize import csv_text
from msda_bench.results.tables import TEXT_FORMATS, latex_file, markdown_text, render
from msda_bench.store.record import Outcome
from msda_bench.suite.plan import DEFAULT_MEASURES

BASE = [100, 103, 98, 110, 95, 104, 99, 101]
LEADS = {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5, "g": 6}
HOSTILE = "=1|b_{x}%&#$~^\\ <script>\x1b[31m\u202e"


def shown(runs, **options) -> tuple[str, Table]:
    table = leaderboard_table(next(views(analyse(runs), **options)))
    return render(table), table


def many(count, seeds=8):
    names = [*LEADS][:count]
    return {name: {"x": [BASE[seed] + LEADS[name] * (seed + 1) for seed in range(seeds)]} for name in names}


def test_csv_has_one_form_for_each_kind_of_value() -> None:
    frame = pd.DataFrame({
        "a": [None, "x,y"], "b": pd.array([True, None], "boolean"), "c": pd.array([3, None], "Int64"),
        "d": [1 / 3, -2.5e-9],
    })  # fmt: skip
    assert csv_text(frame) == 'a,b,c,d\n,true,3,0.333333\n"x,y",,,-2.5e-09\n'


@given(st.text())
def test_any_text_round_trips_through_csv_printable_and_without_formulas(text: str) -> None:
    written = csv_text(pd.DataFrame({"a": [text], "b": [1]}))
    header, row = csv.reader(io.StringIO(written, newline=""))
    assert (header, row[1]) == (["a", "b"], "1")
    assert row[0].isprintable()
    assert not row[0].startswith(("=", "+", "-", "@"))
    if text.isprintable():
        assert row[0] in {" ".join(text.split()), "'" + " ".join(text.split())}


def test_holms_set_is_marked_and_the_papers_on_request(table):
    nearly = [8, 7, 6, 5, 4, 3, 2, -1]  # one-sided p 2/256; two-sided 4/256, times 6 pairs
    best = [base + step for base, step in zip(BASE, nearly, strict=True)]
    runs = table({"best": {"x": best}, **{name: {"x": BASE} for name in ("b", "c", "d")}})
    text, found = shown(runs)
    assert len(re.findall(r"\d\*", text)) == 4
    assert "every method that was not shown to be worse" in found.notes[0]
    assert "paired over 8 seeds, alpha 0.05, Holm's correction over all 6 pairs" in found.notes[0]
    text, found = shown(runs, marks="paper")
    assert len(re.findall(r"\d\*", text)) == 1
    assert found.notes[0].startswith("*: the paper's bold")


def test_beyond_six_methods_marks_are_against_the_baseline(table):
    text, found = shown(table(many(7), baseline="b"))
    marks = {line.split()[0]: line[-1] for line in text.splitlines()[2:]}
    assert marks.pop("b").isdigit()
    assert marks == {"a": "!"} | dict.fromkeys("cdefg", "*")
    assert found.notes[0].startswith("*: significantly better than b; !: significantly worse than b (")
    assert "Holm's correction over the 6 comparisons with b" in found.notes[0]


def test_if_nothing_can_be_significant_nothing_is_marked_or_ordered(table):
    runs = table(many(3, seeds=4))
    text, found = shown(runs)
    assert "*" not in text
    assert found.notes == ()
    assert found.verdict[1].endswith(
        "with 4 seeds no difference among all 3 pairs of methods can be significant after Holm's correction; "
        "that takes 7."
    )
    (pairs,) = pairs_tables(next(views(analyse(runs))))
    assert pairs.cells["pair"].tolist() == ["a against b", "a against c", "b against c"]


def test_a_control_has_fewer_tests_to_correct_for(table):
    _, found = shown(table(many(7), baseline="b"))  # 2 / 2^8 times the 6 tests against b, not all 21
    assert re.fullmatch(r"Significantly worse than it: b -[^,]*, [^,]*\]\.", found.verdict[1])
    assert found.verdict[2] == "Too few pairs for a test against it: f, e, d, c and a."
    better, worse = (re.sub(r" [+-]\S+ \[[^]]*\]", "", line) for line in found.verdict[3:5])
    assert better == "Significantly better than the baseline b: g, f, e, d and c."
    assert worse == "Significantly worse than the baseline b: a."


def test_the_better_method_of_a_significant_pair_comes_first(table):
    (pairs,) = pairs_tables(next(views(analyse(table(many(2))))))
    row = pairs.cells.iloc[0]
    assert (row["pair"], row["median"], row["W/T/L"], row["n"]) == ("b > a", "+2.25", "8/0/0", "8/8")
    assert row["Holm"].endswith("*")


def test_captions_count_the_available_seeds(table):
    runs = table({"a": {"x": [1, 2, 3, 4, 5, 6, None]}, "b": {"x": [2, 4, 6, 8, 10, 12, 14]}})
    text, found = shown(runs)
    assert "up to 7 seeds" in found.title
    assert "paired over 6 seeds" in found.notes[0]
    assert "(6/7)" in text
    whole = table({name: {"x": [*scores, None]} for name, scores in {"a": [1, 2, 3], "b": [2, 3, 4]}.items()})
    assert shown(whole)[1].title.endswith("standard error of 3 of 4 seeds")


def test_squared_errors_share_one_scale():
    unit = Unit.of(DEFAULT_MEASURES["regression"], [0.0021, 0.00005])
    assert unit.label == "mean squared error, times 10^4, lower is better"
    assert (unit.show(0.0021), unit.show(0.00005), unit.show(5e7)) == ("21.00", "0.50", "5e+11")


def test_wide_tables_are_split_and_show_every_cell_once(table):
    targets = [f"target-number-{i}" for i in range(12)]
    runs = table(
        {name: {target: [Outcome(200, n_correct=100 + i)] * 2 for target in targets} for i, name in enumerate("ab")}
    )
    text, _ = shown(runs)
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("target-number-") == 12
    assert text.splitlines()[-4].split()[-1] == "average"


@pytest.mark.parametrize("form", TEXT_FORMATS)
def test_every_format_shows_every_method(form, sample):
    table = leaderboard_table(next(views(analyse(sample))))
    text = render(table, form)
    assert all(name in text for name in ("MDAN-hard", "81.25"))
    assert not any("\ue000" <= char <= "\ue00f" for char in text)
    assert "\x1b" not in text


def test_columns_and_methods_can_be_selected_and_transposed(sample):
    table = leaderboard_table(next(views(analyse(sample))))
    cut = table.cut(["average"], ["SRC", "DARN"])
    assert (list(cut.cells), cut.cells["method"].tolist()) == (["method", "average"], ["SRC", "DARN"])
    assert render(cut, transpose=True).split()[:3] == ["method", "SRC", "DARN"]


def test_hostile_text_is_escaped_in_each_language():
    rows = pd.DataFrame({"method": ["[x]", "ok"], "a": [1.0, 2.0]})
    columns = (Column("method", "text", ["method"]), Column("a|b_{", "number", ["a"]))
    table = Table("t", HOSTILE, rows, columns, notes=(HOSTILE,))
    tex = latex_file(table)
    plain = re.sub(r"\\[{}%&#$_]", "", tex)
    assert plain.count("{") == plain.count("}")
    assert r"\{x\}\%\&\#\$\textasciitilde{}\textasciicircum{}\textbackslash{}" in tex
    assert re.search(r"^ *\{\}\[x\]", tex, re.MULTILINE)  # LaTeX would read [ after the end of a row as an option
    for text in (markdown_text(table), render(table, "html"), render(table, "unsafehtml")):
        assert "<script>" not in text.replace(r"\<script\>", "")
    assert r"a\|b\_{" in markdown_text(table)
