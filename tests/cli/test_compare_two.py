"""`msda-bench compare A B` on folders written by the store."""

from dataclasses import replace

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome
from tests.cli.conftest import METHODS


def changed(cell, method, target, seed):
    """Other data, aggregators and epochs."""
    aggregator = cell.aggregator and replace(cell.aggregator, version=2, params={"gamma": 0.5})
    training = cell.training.model_copy(update={"epochs": 4})
    return replace(cell, aggregator=aggregator, training=training, fingerprint="f" * 64)


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


def test_golden(make_results, monkeypatch, capsys, golden):
    """Eight seeds, much that differs, a method, seeds and runs of one side alone, and a message with a colour code."""

    def marred(record, method, target, seed):
        if (method, target, seed) == ("DARN", "y", 2):
            message = "RuntimeError: bad\x1b[31m shape\nin two lines"
            return replace(record, status="failed", outcome=None, message=message)
        return None if (method, seed) == ("TAR", 4) else better(record, method, target, seed)

    a = make_results("before", seeds=range(9))
    make_results("after", methods=METHODS, seeds=range(1, 9), cells=changed, records=marred)
    monkeypatch.chdir(a.parent)
    before = {path: path.read_bytes() for path in a.parent.rglob("*.*")}
    assert main(["compare", "before", "after"]) == 1
    golden("compare-two.txt", capsys.readouterr().out)
    assert main(["compare", "before", "after", "--format", "csv"]) == 1
    golden("compare-two.csv", capsys.readouterr().out)
    assert main(["compare", "before", "before", "--quiet"]) == 0
    golden("compare-same.txt", capsys.readouterr().out)
    assert {path: path.read_bytes() for path in a.parent.rglob("*.*")} == before


def test_a_p_that_no_difference_could_make_significant_is_in_brackets(make_results, compared):
    _, lines = compared(make_results("before"), make_results("after", records=better))
    assert rows(lines, "DARN") == [["62.50", "66.00", "+3.50", "-1.69", "..", "8.69", "(0.0938)", "6/6"]] * 3


def test_parts_of_only_one_folder_are_named(make_results, compared):
    a = make_results("mine", methods=["SRC", "DARN"], seeds=range(4))
    b = make_results("theirs", methods=["DARN", "TAR"], seeds=range(2, 9), table={"alpha": 0.01, "name": "own"})
    code, lines = compared(a, b, "--quiet", "--match", "toy=own")
    assert (code, "toy, in B own (toy): accuracy in percent" in lines) == (0, True)
    assert "only in A: methods SRC; seeds 0-1" in lines
    assert "only in B: methods TAR; seeds 4-8" in lines
    assert "differs: alpha: A 0.05, B 0.01; that of A counts here" in lines
    assert [row[-1] for row in rows(lines, "DARN")] == ["2/2"] * 3
    assert lines[-1] == "verdict: the same: 4 runs have equal results"
    code, lines = compared(a, make_results("others", table={"name": "own", "dataset": "digits"}))
    whole = ["only in A: toy (toy), a whole experiment", "only in B: own (digits), a whole experiment"]
    nothing = (
        "verdict: nothing in common: no run is ok in both; --match X=Y pairs methods or experiments of other names"
    )
    assert (code, lines[-3:]) == (1, [*whole, nothing])
