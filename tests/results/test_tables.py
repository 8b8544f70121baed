"""Tables as text, their marks and hostile text; and the verdict, from the numbers of the tables."""

import csv
import io
import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from msda_bench.results.experiment_tables import leaderboard_table, views
from msda_bench.results.leaderboard import analyse
from msda_bench.results.report import Column, Table
from msda_bench.results.tables import csv_text, latex_text, markdown_text, render
from msda_bench.results.verdict import conclusion
from msda_bench.store.record import Outcome
from tests.results.conftest import BASE, lead, many

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


NOISE = [2, -1, 1, -3, 0, 1, -2, 2]


def beside(shift, seeds=8):
    """Differs by this shift and noise."""
    return {"x": [base + shift + noise for base, noise in zip(BASE, NOISE, strict=True)][:seeds]}


@pytest.fixture
def view(table):
    def make(runs, **options):
        (view,) = views(analyse(table(runs, **{"baseline": "SRC"} | options)))
        return view

    return make


def interval(differences):
    """The mean of differences of 200 in percent, with Student's interval, as sentences have them."""
    points = [number / 2 for number in differences]
    mean = sum(points) / len(points)
    low, high = stats.t.interval(0.95, len(points) - 1, mean, stats.sem(points))
    return f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]"


@pytest.mark.parametrize(
    ("methods", "reference", "first", "second"),
    [
        pytest.param(
            {"MDAN": lead(-1), "DARN": lead(2)}, 40,
            "1 of 2 methods gains over SRC: DARN " + interval(range(2, 18, 2)), "There is headroom: ", id="one gains",
        ),
        pytest.param(
            {"MDAN": lead(-1), "DARN": beside(0)}, 0,
            "None of 2 methods was shown to gain over SRC; the largest difference is DARN " + interval(NOISE),
            "Headroom is not shown: ", id="nothing helps and it is open whether labels would",
        ),
        pytest.param(
            {"MDAN": lead(-1), "DARN": beside(0)}, -20, "None of 2 methods was shown to gain over SRC; ",
            "Labels of the target would not help: ref ", id="labels of the target would not help either",
        ),
        pytest.param({"DARN": lead(-1)}, 40, "No method was shown to gain over SRC; ", "There is", id="only one"),
        pytest.param(
            {name: lead(step, 3) for name, step in (("DARN", 2), ("MDAN", 1))} | {"SRC": lead(0, 3)}, None,
            "Whether a method gains over SRC is open: with 3 seeds no difference among 3 comparisons can be "
            "significant, which takes 7; the largest difference is DARN ", "Not tested against SRC", id="too few seeds",
        ),
    ],
)  # fmt: skip
def test_the_question_is_answered_first(view, methods, reference, first, second):
    references = {} if reference is None else {"ref": beside(reference)}
    sentences = view({"SRC": {"x": BASE}, **methods, **references}).verdict
    assert sentences[0].startswith(first)
    assert sentences[1].startswith(second)


def test_differences_are_those_that_a_reader_can_subtract(view):
    made = view(
        {"SRC": {"x": BASE}, "even": beside(1), "DARN": lead(2), "MDAN": lead(-1), "twin": {"x": BASE}}, against="SRC"
    )
    means = made.board.set_index(["method", "target"])["mean"].xs("x", level="target")
    gains = {name: f"{means[name] - means['SRC']:+.2f}" for name in ("even", "DARN", "MDAN", "twin")}
    said = " ".join(made.verdict)
    assert all(f"{name} {gain} [" in said for name, gain in gains.items())
    assert conclusion(made.experiment, made.pairs) == (
        "table, against SRC: DARN (+4.5) better; 1 equal; MDAN (-2.2) worse; 1 not shown to differ"
    )


def test_with_a_margin_methods_are_what_the_exact_tests_say(view):
    runs = {"SRC": {"x": BASE}, "DARN": lead(2), "MDAN": lead(-1)}
    first, *others = view(runs, margin=1.0).verdict
    assert first.startswith("1 of 2 methods gains over SRC, by more than 1 point: DARN +4.50 [")
    assert others[0].startswith("Worse than SRC: MDAN ")
    assert view(runs, margin=9.0).verdict[1].startswith("Within 9 points of SRC: ")


def test_without_a_baseline_the_best_mean_is_named(view):
    assert view({"A": lead(0), "B": lead(1)}, baseline=None).verdict[0] == (
        "B has the best mean at x: 52.88 +- 0.89 % accuracy. Shown to be worse: A -2.25 [-3.27, -1.23]."
    )
    few = view({"a": lead(0, 3), "b": lead(1, 3), "c": lead(2, 3)}, baseline=None).verdict[0]
    assert few.endswith(
        "That is not certain: with 3 seeds no difference among 3 comparisons can be significant, which takes 7."
    )


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ({"a": {"x": [None]}}, "No method has a result yet."),
        ({"a": {"x": ["diverged"]}, "b": {"x": ["diverged"]}}, "Every run of a ranked method diverged, so no method "),
        ({"a": {"x": [100], "y": [None]}}, "No method has a result at every target yet."),
        ({"ref": {"x": [100]}, "ref2": {"x": [100]}}, "No method is ranked here: all are references."),
    ],
)
def test_without_a_score_the_verdict_says_why(view, runs, why):
    assert view(runs, baseline=None).verdict[0].startswith(why)


def test_another_control_and_missing_runs_are_told(view):
    best = {"x": [*lead(3)["x"][:4], *[None] * 4]}
    sentences = view({"SRC": lead(0), "DARN": lead(2), "MDAN": best}, against="DARN").verdict
    assert any(line.startswith("Worse than DARN: SRC -4.50 [") for line in sentences)
    assert sentences[-1] == "4 of 24 runs have no score (4 missing); tests take the seeds that both methods have."
