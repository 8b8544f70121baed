"""`msda-bench verify`, and how it chooses the published numbers; tests/results/test_verify.py tests the comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.suite.published import known_tables

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
