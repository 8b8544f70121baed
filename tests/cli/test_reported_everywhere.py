"""Every command reports missing, diverged, failed, damaged and conflicting records."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from tests.cli.conftest import texts


def unwrapped(text: str) -> str:
    """Text before wrapping; no line of a table begins with a space."""
    return text.replace("\n  ", " ")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(params=["leaderboard", "leaderboard --quiet", "compare", "compare --quiet", "weights"])
def command(request: pytest.FixtureRequest) -> list[str]:
    return request.param.split()


def test_every_fault_is_reported_on_the_screen(command, marred, marks, capsys):
    assert main([command[0], str(marred), *command[1:]]) == 1
    shown = capsys.readouterr()
    lines = unwrapped(shown.out).splitlines()
    for mark in marks:
        assert [line for line in lines if line in {f"note: {mark}", f"problem: toy: {mark}"}], mark
    assert shown.err.count("another result for the same cell") == 1
    assert shown.err.count("; now ") == 1


def test_an_already_set_aside_record_is_still_reported(marred, marks, capsys):
    for _ in range(2):
        capsys.readouterr()
        assert main(["leaderboard", str(marred)]) == 1
    lines = unwrapped(capsys.readouterr().out).splitlines()
    assert f"note: {marks[4]}" in lines


@pytest.mark.parametrize("name", ["leaderboard", "compare"])
def test_every_fault_is_reported_in_json(name, marred, marks, capsys):
    assert main([name, str(marred), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["command"], found["complete"]) == (4, name, False)
    (table,) = found["experiments"]
    assert set(marks[3:]) <= set(texts(found, "notes"))
    assert [(row["method"], row["status"], row["runs"]) for row in table["not_ok"]] == [
        ("SRC", "diverged", 1),
        ("SRC", "missing", 2),
        ("DARN", "failed", 1),
    ]
    assert len(found["faults"]) == 2


def test_every_fault_is_in_the_notes_of_leaderboard_csv(marred, marks, capsys):
    assert main(["leaderboard", str(marred)]) == 1
    rows = list(csv.DictReader((marred / "leaderboard.csv").read_text().splitlines()))
    assert {row["notes"] for row in rows} == {"; ".join(rows[0]["notes"].split("; "))}
    assert all(mark in rows[0]["notes"] for mark in marks[3:])
    (at_x,) = [row for row in rows if (row["method"], row["target"]) == ("SRC", "x")]
    assert [at_x[f"n_{what}"] for what in ("ok", "diverged", "missing")] == ["4", "1", "1"]
    before = files(marred)
    assert main(["leaderboard", str(marred)]) == 1
    assert files(marred) == before


def test_two_folders(marred, make_results, marks, capsys):
    sound = make_results("sound")
    before = files(marred) | files(sound)
    assert main(["compare", str(sound), str(marred)]) == 1
    shown = capsys.readouterr()
    lines = unwrapped(shown.out).splitlines()
    for mark in marks:
        assert [line for line in lines if line in {f"note: B: {mark}", f"problem: B: toy: {mark}"}], mark
    reported = "(3 equal); 4 of 36 runs are not ok in both; 6 runs of the same cell have another result; what differs: "
    assert lines[-1].endswith(f"{reported}made with msda-bench, made with numba")
    assert "not a record; now" not in shown.err
    assert shown.err.count("is truncated or not a record") == 1
    assert files(marred) | files(sound) == before


def test_two_folders_in_json(marred, make_results, marks, capsys):
    assert main(["compare", str(marred), str(make_results("sound")), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {f"A: {mark}" for mark in marks[3:]} <= set(texts(found, "notes"))
    assert not [note for note in texts(found, "notes") if note.startswith("B: ")]
    assert texts(found, "problems") == [f"A: toy: {marks[place]}" for place in (1, 0, 2)]
    assert len(found["faults"]) == 2


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_every_fault_is_reported_by_a_merge(options, marred, make_results, marks, capsys):
    """The other folder fills gaps; runs missing from both are reported."""
    sound = make_results("sound", methods=["DARN"])
    before = files(marred) | files(sound)
    assert main(["leaderboard", "--merge", str(marred), str(sound), *options]) == 1
    text = unwrapped(capsys.readouterr().out)
    assert "a plugin's bug" not in text
    for mark in (marks[1], *marks[3:]):
        reported = mark.removeprefix("SRC: ") if mark == marks[1] and options else mark
        assert reported in text or "diverged" in mark, mark
    assert files(marred) | files(sound) == before


def test_every_fault_is_reported_by_verify(marred, marks, capsys, tmp_path):
    table = tmp_path / "table.csv"
    published = "SRC,x,52.5,mine 2021,Table 3,high\nSRC,y,52.5,mine 2021,Table 3,high\n"
    table.write_text(f"method,target,mean,source,table,certainty\n{published}")
    assert main(["verify", str(marred), "--table", str(table)]) == 1
    lines = unwrapped(capsys.readouterr().out).splitlines()
    assert [line for line in lines if line.startswith("note: another result of the same cell")]
    assert [line for line in lines if line.startswith("note: a damaged record counts as missing")]
    assert f"problem: toy: {marks[1]}" in lines
