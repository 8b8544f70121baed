"""The commands that show one result folder, and what they share; folders are written by the store."""

import csv
import errno
import re
import subprocess
import sys
from html import unescape

import pytest

from msda_bench.cli.main import main
from tests.cli.conftest import MARKS
from tests.results.conftest import gaining, write_folder
from tests.store.faulty import faults

TABLES = ["comparisons.csv", "leaderboard.csv", "runs.csv"]


@pytest.fixture(params=["leaderboard", "compare"])
def command(request):
    return request.param


@pytest.fixture
def folder(make_results):
    return make_results(methods=["SRC", "DARN"])


def tables(folder):
    return sorted(path.name for path in folder.glob("*.csv"))


def test_tables_are_printed_and_written_with_equal_bytes_by_both_commands(folder, capsys):
    assert main(["leaderboard", str(folder)]) == 0
    assert "62.50 +- 0.76*" in capsys.readouterr().out
    assert tables(folder) == TABLES
    first = [(folder / name).read_bytes() for name in TABLES]
    assert main(["compare", str(folder)]) == 0
    assert "DARN > SRC" in capsys.readouterr().out
    assert [(folder / name).read_bytes() for name in TABLES] == first


def test_methods_are_refused_where_every_row_is_printed(command, folder, capsys):
    assert main([command, str(folder), "--methods", "SRC", "--format", "csv"]) == 2
    line = "msda-bench: error: --methods is for tables; csv has every method, so leave it out\n"
    assert capsys.readouterr().err == line


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
            assert err.startswith(f"msda-bench: warning: {folder} is read-only" if missing and not ended else "")
            assert err.count("\n") == bool(missing)
        assert main([command, str(folder)]) == 0
        capsys.readouterr()


@pytest.mark.parametrize("command", ["leaderboard", "compare", "report", "sources", "verify"])
def test_a_folder_without_results_is_one_line(command, tmp_path, capsys):
    assert main([command, str(tmp_path / "nowhere")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"msda-bench: error: {tmp_path / 'nowhere'}: ")


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


@pytest.mark.parametrize(
    "command", ["leaderboard", "leaderboard --quiet", "compare", "compare --quiet", "verify --table TABLE"]
)
def test_every_fault_is_reported_on_the_screen(command, marred, capsys, tmp_path):
    table = tmp_path / "table.csv"
    numbers = "".join(f"SRC,{target},52.5,mine 2021,Table 3,high\n" for target in "xy")
    table.write_text(f"method,target,mean,source,table,certainty\n{numbers}")
    name, *options = command.replace("TABLE", str(table)).split()
    for _ in range(2):
        assert main([name, str(marred), *options]) == 1
        shown = capsys.readouterr()
        lines = shown.out.replace("\n  ", " ").splitlines()  # as they were before wrapping
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
