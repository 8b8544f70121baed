"""What only `compare` does; test_leaderboard.py tests what both commands share."""

from __future__ import annotations

import re
from html import unescape

import pytest

from msda_bench.cli.main import main
from tests.results.conftest import gaining, write_folder


@pytest.fixture
def many(tmp_path, monkeypatch):
    """Six datasets, one of them also with a corrupted source."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    bad = gaining(-90, name="bad", dataset="d0", corrupted="s")
    return write_folder(tmp_path / "many", *gaining(20, 30, 10, 40, -50, 60), *bad)


def test_across_shows_where_methods_beat_the_baseline_and_draws_it(many, capsys):
    assert main(["compare", str(many), "--across"]) == 0
    out = capsys.readouterr().out
    assert "better on 5 and worse on 1" in " ".join(out.split())
    rows = {words[0]: words[1:] for line in reversed(out.splitlines()) if (words := line.split())}
    assert rows["up"][:7] == ["+1.83", "1.83", "..", "1.83", "5/6", "1/6", "1.33"]
    assert rows["up"][7:] == ["+2.00*", "+3.00*", "+1.00*"]
    assert {"+4.00*", "-5.00!", "+6.00*"} <= {*out.split()}  # the gains on the last datasets
    assert rows["SRC"] == [*["-"] * 4, "1.83", *["-"] * 3]
    assert rows["ref"] == ["+10.00", "10.00", "..", "10.00", "-", "-", "-", *["+10.00"] * 3]
    assert "Not included: bad: the labels of source s are shuffled, and d0 itself counts." in " ".join(out.split())
    assert "toy" not in out  # no table of a single experiment
    picture = unescape((many / "critical-difference.svg").read_text())
    assert {"better on 5, worse on 1 of 6", "the baseline"} <= set(re.findall(r">([^<>]+)<", picture))
    assert not (many / "leaderboard.csv").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--across", "--experiments", "e1"], "--across needs experiments of two datasets or more, by accuracy"),
        (["--across", "--metric", "macro_recall,macro_f1"], "macro_recall"),
        (["HERE", "--across"], "--across is for one result folder"),
        (
            ["--across", "--by", "oracle"],
            "--by 'oracle': is no criterion of this folder: the suite selects no settings",
        ),
        (["--by", "oracle"], "--by 'oracle': is no criterion of this folder: the suite selects no settings"),
        (["--experiments", "e9"], "--experiments: there is no 'e9' (known: e0, e1, e2, e3, e4, e5, bad)"),
    ],
)
def test_nothing_to_compare_across_datasets_is_one_line(many, options, words, capsys):
    assert main(["compare", str(many), *(option.replace("HERE", str(many)) for option in options)]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1
