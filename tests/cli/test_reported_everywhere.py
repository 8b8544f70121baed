"""Every command reports missing, diverged, failed, damaged and conflicting records."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from tests.cli.conftest import MARKS

SCREENS = ["leaderboard", "leaderboard --quiet", "compare", "compare --quiet", "verify --table TABLE"]


def unwrapped(text: str) -> list[str]:
    """The lines before wrapping; no line of a table begins with a space."""
    return text.replace("\n  ", " ").splitlines()


def files(*folders: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", SCREENS)
def test_every_fault_is_reported_on_the_screen(command, marred, capsys, tmp_path):
    table = tmp_path / "table.csv"
    numbers = "".join(f"SRC,{target},52.5,mine 2021,Table 3,high\n" for target in "xy")
    table.write_text(f"method,target,mean,source,table,certainty\n{numbers}")
    name, *options = command.replace("TABLE", str(table)).split()
    for _ in range(2):
        assert main([name, str(marred), *options]) == 1
        shown = capsys.readouterr()
        lines = unwrapped(shown.out)
        for mark in MARKS if name != "verify" else (MARKS[1], *MARKS[3:5]):
            assert [line for line in lines if line in {f"note: {mark}", f"problem: toy: {mark}"}], mark
        assert shown.err.count("another result for the same cell") == 1


def test_every_fault_is_in_the_notes_of_leaderboard_csv(marred):
    assert main(["leaderboard", str(marred)]) == 1
    rows = list(csv.DictReader((marred / "leaderboard.csv").read_text().splitlines()))
    assert {row["notes"] for row in rows} == {rows[0]["notes"]}
    assert all(mark in rows[0]["notes"] for mark in MARKS[3:])
    (at_x,) = [row for row in rows if (row["method"], row["target"]) == ("SRC", "x")]
    assert [at_x[f"n_{status}"] for status in ("ok", "diverged", "missing")] == ["4", "1", "1"]
    before = files(marred)
    assert main(["leaderboard", str(marred)]) == 1
    assert files(marred) == before
