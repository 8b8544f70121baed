"""The commands that show one result folder, and what they share; folders are written by the store."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from tests.store.faulty import faults

TABLES = ["comparisons.csv", "leaderboard.csv", "runs.csv"]


@pytest.fixture(params=["leaderboard", "compare"])
def command(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def make_folder(make_results: Callable[..., Path]) -> Callable[..., Path]:
    """A result folder; the runs in `missing` have no record."""

    def make(*missing: object) -> Path:
        return make_results(methods=["SRC", "DARN"], records=lambda record, *run: None if run in missing else record)

    return make


def tables(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.csv"))


def test_tables_are_printed_and_written_with_equal_bytes_by_both_commands(make_folder, capsys):
    folder = make_folder()
    assert main(["leaderboard", str(folder)]) == 0
    assert "62.50 +- 0.76*" in capsys.readouterr().out
    assert tables(folder) == TABLES
    first = [(folder / name).read_bytes() for name in TABLES]
    assert main(["compare", str(folder)]) == 0
    assert "DARN > SRC" in capsys.readouterr().out
    assert [(folder / name).read_bytes() for name in TABLES] == first


def test_methods_are_refused_where_every_row_is_printed(command, make_folder, capsys):
    assert main([command, str(make_folder()), "--methods", "SRC", "--format", "csv"]) == 2
    line = "msda-bench: error: --methods is for tables; csv has every method, so leave it out\n"
    assert capsys.readouterr().err == line


def test_a_read_only_folder_is_shown_and_a_full_disk_is_an_error(command, make_folder, capsys):
    folder = make_folder()
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


def test_the_tables_are_written_even_if_nobody_reads_the_output(make_folder):
    folder = make_folder()
    words = [sys.executable, "-c", "from msda_bench.cli.main import entry; entry()", "leaderboard", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
    assert tables(folder) == TABLES
