"""`msda-bench compare A B` on folders written by the store."""

import re
from dataclasses import replace

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome
from tests.cli.conftest import METHODS


def longer(cell, *_):
    return replace(cell, training=cell.training.model_copy(update={"epochs": 4}))


def better(record, method, target, seed):
    """DARN gains 1 to 6 points, SRC loses as many, TAR does not change."""
    gain = {"DARN": 1, "SRC": -1}.get(method, 0) * (1 + seed)
    return replace(record, outcome=Outcome(100, n_correct=record.outcome.n_correct + gain))


def rows(lines, method):
    return [line.split()[2:] for line in lines if line.startswith(f"{method} ")]


@pytest.fixture
def compared(capsys):
    """`compared(a, b, ...)`: the exit code and the lines before wrapping; no line of a table begins with a space."""

    def run(*words):
        code = main(["compare", *map(str, words)])
        return code, capsys.readouterr().out.replace("\n  ", " ").splitlines()

    return run


def test_equal_folders_are_reported_as_equal(make_results, compared):
    a, b = make_results("mine"), make_results("theirs")
    before = {path: path.read_bytes() for path in a.parent.rglob("*.*")}
    code, lines = compared(a, b)
    assert (code, lines[:2]) == (0, [f"A: {a} (suite toy-suite)", f"B: {b} (suite toy-suite)"])
    assert lines[-1] == "verdict: the same: 36 runs of the same cells have equal results"
    same = "same: 36 of 36 runs that both plan are ok in both, 36 of the same cell, 36 with an equal result"
    assert same in lines
    assert not [line for line in lines if line.startswith(("differs", "only", "problem", "note"))]
    assert {path: path.read_bytes() for path in a.parent.rglob("*.*")} == before


def test_golden(make_results, monkeypatch, capsys, golden):
    """Eight seeds, longer training, a method, seeds and runs missing on one side, and a message with a colour code."""

    def marred(record, method, target, seed):
        if (method, target, seed) == ("DARN", "y", 2):
            message = "RuntimeError: bad\x1b[31m shape\nin two lines"
            return replace(record, status="failed", outcome=None, message=message)
        return None if (method, seed) == ("TAR", 4) else better(record, method, target, seed)

    a = make_results("before", seeds=range(9))
    make_results("after", methods=METHODS, seeds=range(1, 9), cells=longer, records=marred)
    monkeypatch.chdir(a.parent)
    assert main(["compare", "before", "after"]) == 1
    golden("compare-two.txt", capsys.readouterr().out)
    assert main(["compare", "before", "after", "--format", "github", "--methods", "DARN"]) == 1
    assert re.search(r"^\| DARN \|.* \+5\.50 \|.* 0\.0234\\\* \|", capsys.readouterr().out, re.MULTILINE)
    assert main(["compare", "before", "after", "--format", "csv"]) == 1
    golden("compare-two.csv", capsys.readouterr().out)


def test_a_p_that_no_difference_could_make_significant_is_in_brackets(make_results, compared):
    _, lines = compared(make_results("before"), make_results("after", records=better))
    assert rows(lines, "DARN") == [["62.50", "66.00", "+3.50", "1.54", "..", "5.46", "(0.0938)", "6/6"]] * 3


def test_parts_of_only_one_folder_are_named(make_results, compared):
    a = make_results("mine", methods=["SRC", "DARN"], seeds=range(4))
    b = make_results("theirs", methods=["DARN", "TAR"], seeds=range(2, 9), table={"alpha": 0.01})
    code, lines = compared(a, b, "--quiet")
    assert code == 0
    assert "only in A: methods SRC; seeds 0-1" in lines
    assert "only in B: methods TAR; seeds 4-8" in lines
    assert "differs: alpha: A 0.05, B 0.01; that of A counts here" in lines
    assert [row[-1] for row in rows(lines, "DARN")] == ["2/2"] * 3
    assert lines[-1] == "verdict: the same: 4 runs of the same cells have equal results"
    assert not [line for line in lines if "Hodges-Lehmann" in line]


def test_differences_in_data_components_versions_engine_and_precision_are_named(make_results, compared):
    def changed(cell, method, target, seed):
        aggregator = cell.aggregator and replace(cell.aggregator, version=2, params={"gamma": 0.5})
        training = cell.training.model_copy(update={"precision": "bf16"}) if target == "y" else cell.training
        return replace(cell, aggregator=aggregator, training=training, fingerprint="f" * 64)

    def moved(record, method, target, seed):
        made = record.provenance | {"torch": "2.12", "distributions": {"msda-bench": "0.2.0", "theirs": "1.0"}}
        record = replace(record, cell=record.cell | {"engine": 2}) if target == "y" else record
        return replace(record, provenance=made) if seed == 5 else record

    code, lines = compared(make_results("mine"), make_results("theirs", cells=changed, records=moved))
    at_y = "; ".join(f"{name}, 6 of 12 runs, first at target y, seed 0" for name in METHODS[:3])
    late = "; ".join(f"{name}, 2 of 12 runs, first at target x, seed 5" for name in METHODS[:3])
    assert code == 0
    assert {
        "differs: fingerprint: A 000000000000, B ffffffffffff: all runs",
        "differs: aggregator.version: A 1, B 2: DARN, all runs",
        "differs: aggregator.params.gamma: A 0.9, B 0.5: DARN, all runs",
        f"differs: training.precision: A default, B bf16: {at_y}",
        f"differs: engine: A 1, B 2: {at_y}",
        f"differs: made with torch: A 2.11, B 2.12: {late}",
        f"differs: made with msda-bench: A 0.1.0, B 0.2.0: {late}",
    } <= {*lines}
    assert "; what differs: " in lines[-1]


def test_experiments_on_one_dataset_pair_whatever_their_names(make_results, compared):
    a = make_results("mine")
    code, lines = compared(a, make_results("theirs", table={"name": "own"}))
    assert (code, "toy, in B own (toy): accuracy in percent" in lines) == (0, True)
    code, lines = compared(a, make_results("others", table={"name": "own", "dataset": "digits"}))
    assert (code, lines[-3:]) == (
        1,
        [
            "only in A: toy (toy), a whole experiment",
            "only in B: own (digits), a whole experiment",
            "verdict: nothing in common: no run is ok in both",
        ],
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("B --match NONE=DARN", "--match: A has no method or experiment 'NONE' (known: SRC, DARN, TAR, toy)"),
        ("B --match toy=none", "--match: B has no method or experiment 'none' (known: SRC, DARN, TAR, toy)"),
        ("B --match SRC=DARNN", "--match: B has no method or experiment 'DARNN' (did you mean 'DARN'?)"),
        ("B --match SRC", "--match 'SRC': must be X=Y, a method or experiment of A and one of B"),
        ("B --match SRC=TAR --match SRC=DARN", "--match 'SRC=DARN': SRC is already matched with TAR"),
        ("--match SRC=DARN", "--match needs two result folders"),
        ("nowhere", "nowhere: is missing"),
    ],
)
def test_bad_usage_is_one_line(make_results, monkeypatch, words, line, capsys):
    monkeypatch.chdir(make_results("A", seeds=[0]).parent)
    make_results("B", seeds=[0])
    assert main(["compare", "A", *words.split()]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith(f"msda-bench: error: {line}")
