"""`msda-bench verify`, and how it chooses the published numbers; tests/results/test_verify.py tests the comparison."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.suite.published import find_table, known_tables
from tests.logs import lines_of, relog

KNOWN = ", ".join(known_tables())
HEAD = "method,target,mean,spread,spread_is,runs,source,table,certainty\n"


def published(path: Path, **means: float) -> Path:
    """A table with the same mean of a method at each target."""
    rows = (
        f"{method},{target},{mean},0.4,standard error,20,a paper,Table 3,high\n"
        for method, mean in means.items()
        for target in ("x", "y", "average")
    )
    path.write_text(HEAD + "".join(rows))
    return path


@pytest.fixture
def make_folder(make_results: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """A folder whose suite names a table that differs by `off` points."""

    def make(off: float = 0.0, **options: object) -> Path:
        table = published(tmp_path / "mine.csv", SRC=52.5 + off, DARN=62.5 + off)
        return make_results(table={"published": find_table(str(table))}, **options)

    return make


def test_a_folder_that_agrees_exits_with_0(make_folder, capsys):
    folder = make_folder(0.1)
    assert main(["verify", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "toy: accuracy in percent beside the numbers of mine" in out
    row = next(line for line in out.splitlines() if line.startswith("DARN"))
    assert " ".join(row.split()) == "DARN x 62.60 +- 0.40 [1] 62.50 +- 0.76 6/6 -0.10 -0.1"
    verdict = out.splitlines()[-1]
    assert verdict.startswith("verdict: toy: agrees: 2 of 2 averages within the published range; 4 of 4 cells within 2")
    assert verdict.endswith("; order of methods agrees in 1 of 1 pairs")
    written = (folder / "verify.csv").read_bytes()
    rows = list(csv.DictReader(written.decode().splitlines()))
    assert [row["difference"] for row in rows if row["target"] != "average"] == ["-0.1"] * 4
    assert main(["verify", str(folder), "--format", "csv"]) == 0
    assert capsys.readouterr().out.encode() == written
    assert (folder / "verify.csv").read_bytes() == written


def test_a_folder_that_differs_or_lacks_runs_exits_with_1(make_folder, capsys):
    folder = make_folder(5.0)
    assert main(["verify", str(folder)]) == 1
    verdict = capsys.readouterr().out.splitlines()[-1]
    assert verdict.startswith("verdict: toy: differs: 0 of 2 averages within the published range (not SRC at average")
    relog(folder, dict.fromkeys(lines_of(folder), b""))
    assert main(["verify", str(folder)]) == 1
    assert "verdict: toy: incomplete (24 of 24 runs are not ok)" in capsys.readouterr().out


def test_a_table_can_be_chosen_and_only_the_suites_own_is_written(make_results, tmp_path, capsys):
    folder = make_results()
    assert main(["verify", str(folder)]) == 2
    assert capsys.readouterr().err == (
        f"msda-bench: error: {folder}: its suite names no published table; give one with --table (known: "
        f"{KNOWN}, or a .csv file), or add `published:` to the suite and run it again\n"
    )
    table = str(published(tmp_path / "own.csv", SRC=52.5, DARN=90.0))
    assert main(["verify", str(folder), "--table", table]) == 1
    assert "beside the numbers of own" in capsys.readouterr().out
    assert main(["verify", str(folder), "--table", table, "--format", "github", "--methods", "DARN"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("| DARN")] == ["DARN"] * 3
    assert not any("SRC" in line or "verdict" in line for line in lines)
    assert not (folder / "verify.csv").exists()


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("darn", "unknown table 'darn' (known: {known}); one of your own is a .csv file"),
        ("nowhere.csv", "nowhere.csv: no such file"),
        ("darn-2020-digits", "{folder}: has no results on any of the targets, the subject of table darn-2020-digits"),
    ],
)
def test_an_unsuitable_table_is_one_line(make_results, capsys, name, what):
    folder = make_results(methods=["SRC"], seeds=[0])
    assert main(["verify", str(folder), "--table", name]) == 2
    assert capsys.readouterr().err == f"msda-bench: error: {what.format(folder=folder, known=KNOWN)}\n"
