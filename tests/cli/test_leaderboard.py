"""The commands that show one result folder, and what they share; folders are written by the store."""

import csv
import errno
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome, Record, Store
from tests.cli.conftest import toy_cell
from tests.logs import lines_of, relog
from tests.results.conftest import gaining, write_folder
from tests.store.faulty import faults

TABLES = ["comparisons.csv", "leaderboard.csv", "runs.csv"]


@pytest.fixture
def folder(make_results):
    return make_results(methods=["SRC", "DARN"])


def tables(folder):
    return sorted(path.name for path in folder.glob("*.csv"))


@pytest.mark.parametrize("command", ["leaderboard", "compare"])
def test_a_read_only_folder_is_shown_and_a_full_disk_is_an_error(command, folder, capsys):
    for missing in (TABLES, [TABLES[0]], []):
        for name in missing:
            (folder / name).unlink(missing_ok=True)
        for code, ended in ((errno.EROFS, 0), (errno.ENOSPC, 2 if missing else 0)):
            with faults(code, 0) as disk:
                assert main([command, str(folder)]) == ended
            out, err = capsys.readouterr()
            assert "SRC" in out
            assert bool(disk.refused) == bool(missing)
            assert err.startswith("msda-bench: warning: the folder is read-only" if missing and not ended else "")
            assert err.count("\n") == bool(missing)
        assert main([command, str(folder)]) == 0
        capsys.readouterr()


def test_the_tables_are_written_even_if_nobody_reads_the_output(folder):
    words = [sys.executable, "-c", "from msda_bench.cli.main import entry; entry()", "leaderboard", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
    assert tables(folder) == TABLES


@pytest.fixture
def many(tmp_path, monkeypatch):
    """Six datasets, one of them also with a corrupted source."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    bad = gaining(-90, name="bad", dataset="d0", corrupted="s")
    return write_folder(tmp_path / "many", *gaining(20, 30, 10, 40, -50, 60), *bad)


def test_across_shows_where_methods_beat_the_baseline_and_draws_it(many, capsys, golden):
    assert main(["compare", str(many), "--across"]) == 0
    golden("across.txt", capsys.readouterr().out.replace(f"{many}/", ""))
    picture = unescape((many / "critical-difference.svg").read_text())
    assert {"better on 5, worse on 1 of 6", "the baseline"} <= set(re.findall(r">([^<>]+)<", picture))
    assert not (many / "leaderboard.csv").exists()


LOST = {
    ("SRC", "x", 0): None,
    ("SRC", "x", 1): {"status": "diverged", "outcome": None, "message": "a risk was not finite in epoch 1"},
    ("DARN", "x", 2): {"status": "failed", "outcome": None, "message": "ValueError: a plugin's bug"},
}
"""Changes of records of a run; None is missing."""


def test_every_fault_is_reported_on_the_screen_and_in_the_notes_of_leaderboard_csv(
    make_results, capsys, tmp_path, golden
):
    def mar(record, method, target, seed):
        slow = {"provenance": record.provenance | {"numba": None}} if (method, target) == ("TAR", "y") else {}
        change = LOST.get((method, target, seed), slow)
        return None if change is None else replace(record, **change)

    folder = make_results("marred", records=mar)
    other, lost = (toy_cell("SRC", "y", seed) for seed in (3, 4))
    Store(folder).publish(Record(other.key, other.to_json(), "ok", Outcome(100, n_correct=1)))
    relog(folder, {lost.key: lines_of(folder)[lost.key][:-9] + b"\n"})
    table = tmp_path / "table.csv"
    numbers = "".join(f"SRC,{target},52.5,mine 2021,Table 3,high\n" for target in "xy")
    table.write_text(f"method,target,mean,source,table,certainty\n{numbers}")
    said = []
    for name, *options in (["leaderboard"], ["compare", "--quiet"], ["verify", "--table", str(table)]):
        assert main([name, str(folder), *options]) == 1
        shown = capsys.readouterr()
        lines = shown.out.replace("\n  ", " ").splitlines()  # as they were before wrapping
        said += [f"{name}:", *(line for line in lines if line.startswith(("problem: ", "note: "))), ""]
        assert shown.err.count("another result for the same run") == 1
    golden("faults.txt", "\n".join(said))
    rows = list(csv.DictReader((folder / "leaderboard.csv").read_text().splitlines()))
    (notes,) = {row["notes"] for row in rows}
    golden("notes.txt", notes)
    (at_x,) = [row for row in rows if (row["method"], row["target"]) == ("SRC", "x")]
    assert [at_x[f"n_{status}"] for status in ("ok", "diverged", "missing")] == ["4", "1", "1"]
