"""What only `compare` does; test_leaderboard.py tests what both commands share."""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import replace
from html import unescape
from io import StringIO

import pandas as pd
import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome
from msda_bench.suite.plan import Search
from tests.cli.conftest import METHODS
from tests.results.conftest import gaining, write_folder


def test_each_comparison_has_its_line(make_results, capsys):
    def gained(record, method, _, seed):
        return replace(record, outcome=Outcome(100, n_correct=60 + seed + (1 + seed) * METHODS.index(method)))

    assert main(["compare", str(make_results(seeds=range(10), records=gained))]) == 0
    lines = capsys.readouterr().out.splitlines()
    pairs = [line.split() for line in lines if line.startswith("DARN > SRC")]
    over_seeds = ["+5.50", "3.33", "..", "7.67", "0.0020", "0.0020*", "3.08", "10/0/0", "10/10"]
    assert [words[3:] for words in pairs] == [over_seeds] * 3
    assert "fewer than 6 are never significant, and are not shown." in " ".join(" ".join(lines).split())
    assert not [line for line in lines if "TAR" in line]


@pytest.fixture
def many(tmp_path, monkeypatch):
    """Six datasets, one of them also with a corrupted source."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    bad = gaining(-90, name="bad", dataset="d0", corrupted="s")
    return write_folder(tmp_path / "many", *gaining(20, 30, 10, 40, -50, 60), *bad)


def test_several_tables_of_one_format_have_their_titles(many, capsys):
    assert main(["compare", str(many), "--format", "github"]) in {0, 1}
    parts = capsys.readouterr().out.split("\n\n")
    assert len(parts) > 3
    assert all(
        part.startswith("|") != other.startswith("|") for part, other in itertools.pairwise(filter(str.strip, parts))
    )


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


def test_across_some_experiments_writes_no_files(many, capsys):
    assert main(["compare", str(many), "--across", "--experiments", "e1,bad", "--format", "csv"]) == 0
    better = pd.read_csv(StringIO(capsys.readouterr().out)).set_index("method")["n_better"].to_dict()
    assert better == {"up": 1, "SRC": 0, "even": 0, "ref": 0}
    assert not (many / "critical-difference.svg").exists()
    assert main(["compare", str(many), "--across", "--experiments", "e1,e2", "--format", "csv"]) == 0
    frame = pd.read_csv(StringIO(capsys.readouterr().out))
    assert frame.set_index("method").loc["up", ["gain:e1", "gain:e2"]].tolist() == [3, 1]


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


def test_across_shows_what_another_criterion_selects(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("os.fsync", lambda _: None)
    parts = []
    for experiment, cells, records in gaining(20, 30):  # the validator selects these; others have 50 more
        search = Search("v", ({"mu": 0.1}, {"mu": 1.0}))
        rows = tuple(replace(row, search=search if row.name == "up" else None) for row in experiment.methods)
        tried = []
        for cell in cells:
            if cell.method != "up":
                tried.append(cell)
                continue
            record, other = records[cell.key], hashlib.sha256(cell.key.encode()).hexdigest()
            more = Outcome(1000, n_correct=record.outcome.n_correct + 50)
            records[cell.key] = replace(record, validation={"v": 1.0})
            records[other] = replace(record, key=other, outcome=more, validation={"v": 0.0})
            tried += [replace(cell, candidate=0), replace(cell, key=other, candidate=1)]
        parts.append((replace(experiment, methods=rows, criteria=("v", "oracle")), tried, records))
    folder = write_folder(tmp_path / "tried", *parts)
    for options, by, gain in (([], None, 2.5), (["--by", "v"], "v", 2.5), (["--by", "oracle"], "oracle", 7.5)):
        assert main(["compare", str(folder), "--across", *options]) == 0
        assert (f"note: settings are those that {by} selects" in capsys.readouterr().out) == (by is not None)
        assert main(["compare", str(folder), "--across", "--format", "csv", *options]) == 0
        assert pd.read_csv(StringIO(capsys.readouterr().out))["mean_gain"][0] == pytest.approx(gain)


def test_two_experiments_of_a_folder_are_compared_run_by_run(many, capsys):
    assert main(["compare", str(many), str(many), "--match", "e0=bad", "--format", "csv"]) == 0
    found = pd.read_csv(StringIO(capsys.readouterr().out))
    assert set(zip(found["experiment_a"], found["experiment_b"], strict=True)) == {("e0", "bad")}
    up = found[(found["method_a"] == "up") & (found["target"] == "average")].iloc[0]
    assert (up["mean_difference"], up["n_paired"], up["losses"]) == (pytest.approx(-11), 10, 10)
