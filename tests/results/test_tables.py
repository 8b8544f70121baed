"""Tables as text, their marks and hostile text; and the verdict, from the numbers of the tables."""

import csv
import io
import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msda_bench.results import formats
from msda_bench.results.experiment_tables import leaderboard_table, views
from msda_bench.results.leaderboard import analyse
from msda_bench.results.report import Column, Table
from msda_bench.results.tables import csv_text, latex_text, markdown_text, render
from msda_bench.results.verdict import conclusion
from msda_bench.store.record import Outcome
from tests.results.conftest import BASE, UP, lead, many, plus

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


def test_beyond_six_methods_tests_are_against_the_baseline_and_marks_against_the_best(table):
    text, board = shown(table(many(7), baseline="b"))
    assert [line.split()[0] for line in text.splitlines()[2:] if line.endswith("*")] == ["g"]
    assert board.notes[0].startswith("*: the best mean, and every method that was not shown to be worse (")
    assert "Holm's correction over the 6 comparisons with b, and over the others with the best" in board.notes[0]
    # 2 / 2^8 times the 6 tests against b, and the 5 against g, not all 21
    better, worse = (re.sub(r" [+-]\S+ \[[^]]*\]", "", line) for line in board.verdict[:2])
    assert better == "5 of 6 methods gain over b: g, f, e, d and c points."
    assert worse == "Worse than b: a."


def test_a_cell_says_how_many_of_its_runs_are_ok_only_where_cells_differ_in_it(table):
    whole, partial = [*plus(*UP[:3])], [*plus(*UP[:2]), None]
    text, board = shown(table({"a": {"x": whole}, "b": {"x": partial}}))
    assert text.count("(2/3)") == 1
    assert "(n/N): only n of N planned runs are ok; the mean is theirs." in board.notes
    text, board = shown(table({"a": {"x": partial}, "b": {"x": partial}}))
    assert "(2/3)" not in text
    assert "2 of 3 seeds" in board.title
    assert not any(note.startswith("(n/N)") for note in board.notes)


def test_wide_tables_are_split_and_show_every_cell_once(table):
    targets = [f"target-number-{i}" for i in range(12)]
    runs = {name: {target: [Outcome(200, n_correct=100 + i)] * 2 for target in targets} for i, name in enumerate("ab")}
    text, _ = shown(table(runs))
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("target-number-") == 12
    assert text.splitlines()[-4].split()[-1] == "average"
    names = [letter * 120 for letter in "ab"]  # each wider than a terminal
    text, _ = shown(table({"a": dict.fromkeys(names, [Outcome(200, n_correct=100)] * 2)}))
    heads = [line.split()[1:] for line in text.splitlines() if line.startswith("method")]
    assert heads[:2] == [[name] for name in names]


def test_hostile_text_is_escaped_in_each_language():
    rows = pd.DataFrame({"method": ["[x]", "ok"], "a": [1.0, 2.0]})
    columns = (Column("method", formats.text, ["method"]), Column("a|b_{", formats.number, ["a"]))
    table = Table("t", HOSTILE, rows, columns, notes=(HOSTILE,))
    tex = latex_text(table)
    plain = re.sub(r"\\[{}%&#$_]", "", tex)
    assert plain.count("{") == plain.count("}")
    assert r"\{x\}\%\&\#\$\textasciitilde{}\textasciicircum{}\textbackslash{}" in tex
    assert re.search(r"^ *\{\}\[x\]", tex, re.MULTILINE)  # LaTeX would read [ after the end of a row as an option
    assert "<script>" not in markdown_text(table).replace(r"\<script\>", "")
    assert r"a\|b\_{" in markdown_text(table)
    assert r"a\textbar{}b\_\{" in tex


NOISE = [2, -1, 1, -3, 0, 1, -2, 2]


def beside(shift, seeds=8):
    """Differs by this shift and noise."""
    return {"x": [base + shift + noise for base, noise in zip(BASE, NOISE, strict=True)][:seeds]}


EVEN = {"x": BASE}
VERDICTS = {
    "one gains": ({"SRC": EVEN, "MDAN": lead(-1), "DARN": lead(2), "ref": beside(40)}, {}),
    "nothing helps and it is open whether labels would": (
        {"SRC": EVEN, "MDAN": lead(-1), "DARN": beside(0), "ref": beside(0)}, {},
    ),
    "labels of the target would not help either": (
        {"SRC": EVEN, "MDAN": lead(-1), "DARN": beside(0), "ref": beside(-20)}, {},
    ),
    "a reference that equals the baseline shows nothing": ({"SRC": EVEN, "DARN": beside(0), "ref": EVEN}, {}),
    "few rows of the target alone do not tell that labels would not help": (
        {"SRC": EVEN, "DARN": beside(0), "ref-alone": beside(-20)}, {},
    ),
    "the reference that also learns from the sources tells the headroom": (
        {"SRC": EVEN, "DARN": beside(0), "ref-alone": beside(20), "ref": beside(10)}, {},
    ),
    "only one method": ({"SRC": EVEN, "DARN": lead(-1), "ref": beside(40)}, {}),
    "too few seeds": ({"SRC": lead(0, 3), "DARN": lead(2, 3), "MDAN": lead(1, 3)}, {}),
    "equal in every pair": ({"SRC": EVEN, "even": beside(1), "DARN": lead(2), "twin": EVEN}, {"pairs": "baseline"}),
    "no baseline": ({"A": lead(0), "B": lead(1)}, {"baseline": None}),
    "no baseline and too few seeds": ({"a": lead(0, 3), "b": lead(1, 3), "c": lead(2, 3)}, {"baseline": None}),
    "no result": ({"a": {"x": [None]}}, {"baseline": None}),
    "all diverged": ({"a": {"x": ["diverged"]}, "b": {"x": ["diverged"]}}, {"baseline": None}),
    "not at every target": ({"a": {"x": [100], "y": [None]}}, {"baseline": None}),
    "references alone": ({"ref": {"x": [100]}, "ref2": {"x": [100]}}, {"baseline": None}),
    "missing runs": (
        {"SRC": lead(0), "DARN": lead(2), "MDAN": {"x": [*lead(3)["x"][:4], *[None] * 4]}}, {"pairs": "baseline"},
    ),
}  # fmt: skip


def test_verdicts_match_the_golden_file(table, golden):
    said = []
    for name, (runs, options) in VERDICTS.items():
        (view,) = views(analyse(table(runs, **{"baseline": "SRC"} | options)))
        said += [f"{name}:", *view.verdict, conclusion(view.experiment, view.pairs), *view.advice.sentences, ""]
    golden("verdicts.txt", "\n".join(said))


@pytest.mark.parametrize(("sizes", "words"), [((90, 90), "90 rows"), ((90, 1200), "90 to 1,200 rows")])
def test_a_reference_alone_says_from_how_many_rows_it_learns(table, sizes, words):
    runs = table({"SRC": EVEN, "DARN": beside(0), "ref-alone": beside(-20)}, baseline="SRC")
    runs["n_train"] = [sizes[seed % 2] for seed in runs["seed"]]
    (view,) = views(analyse(runs))
    assert f"ref-alone learns from {words} of the target alone" in " ".join(view.verdict)
