"""`msda-bench leaderboard`, and what it shares with `compare`, on folders written by the store."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome, Record, Store
from tests.cli.conftest import texts, toy_cell
from tests.store.faulty import faults

SRC_1 = toy_cell("SRC", "x", 1)
TABLES = ["comparisons.csv", "leaderboard.csv", "runs.csv"]


@pytest.fixture(params=["leaderboard", "compare"])
def command(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def make_folder(make_results: Callable[..., Path]) -> Callable[..., Path]:
    """A result folder; runs in `failed` failed, runs in `missing` have no record."""

    def make(failed: Sequence[object] = (), missing: Sequence[object] = ()) -> Path:
        def records(record: Record, *run: object) -> Record | None:
            if run in failed:
                return replace(record, status="failed", outcome=None, message="ValueError: no")
            return None if run in missing else record

        return make_results(methods=["SRC", "DARN"], records=records)

    return make


def tables(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.csv"))


def test_the_leaderboard_is_printed_and_written(command, make_folder, capsys):
    folder = make_folder()
    assert main([command, str(folder)]) == 0
    assert tables(folder) == TABLES
    out = capsys.readouterr().out
    assert ("62.50 +- 0.76*" in out) == (command == "leaderboard")
    assert ("DARN > SRC" in out) == (command == "compare")


def test_the_verdict_is_between_title_and_table(make_folder, capsys):
    folder = make_folder(missing=[("SRC", "x", 2)])
    assert main(["leaderboard", str(folder)]) == 1
    title, verdict, table, _ = capsys.readouterr().out.split("\n\n")
    assert title.startswith("\ntoy (")
    assert max(map(len, verdict.splitlines())) <= 80
    assert " ".join(verdict.split()) == (
        "DARN has the best mean on average over 2 targets: 62.50 +- 0.76 % accuracy. That is not certain: with 5 seeds "
        "no difference can be significant; that takes 6. 1 of 24 runs "
        "have no score (1 missing); tests take the seeds that both methods have."
    )
    assert table.startswith("method")
    assert main(["leaderboard", str(folder), "--quiet"]) == 1
    assert "best mean" not in capsys.readouterr().out
    assert main(["leaderboard", str(folder), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert " ".join(texts(document, "verdict", "toy")) == verdict.replace("\n", " ")
    assert main(["leaderboard", str(folder), "--format", "csv"]) == 1
    assert "best mean" not in capsys.readouterr().out


def test_failed_and_missing_runs_are_named(command, make_folder, capsys):
    folder = make_folder(failed=[("SRC", "x", 2)], missing=[("DARN", "x", 3), ("DARN", "y", 5)])
    assert main([command, str(folder)]) == 1
    out = capsys.readouterr().out.replace("\n  ", " ")
    assert "problem: toy: SRC: 1 of 12 runs failed, first at target x, seed 2: ValueError: no" in out
    assert "problem: toy: DARN: 2 of 12 runs missing, first at target x, seed 3" in out
    assert tables(folder) == TABLES


def test_a_damaged_record_is_named(command, make_folder, capsys):
    folder = make_folder()
    path = Store(folder).path(SRC_1.key)
    path.write_bytes(path.read_bytes()[:-20])
    assert main([command, str(folder)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"msda-bench: {path}: ")
    assert "toy: SRC: 1 of 12 runs missing" in captured.out


def test_results_in_conflict_are_named(command, make_folder, capsys):
    folder = make_folder()
    Store(folder).publish(Record(SRC_1.key, SRC_1.to_json(), "ok", Outcome(100, n_correct=1)))
    assert main([command, str(folder)]) == 1
    path = Store(folder).path(SRC_1.key).with_suffix(".conflict-1.json")
    assert capsys.readouterr().err == f"msda-bench: {path}: another result for the same cell\n"
    assert tables(folder) == TABLES


def test_running_again_writes_equal_bytes(make_folder):
    folder = make_folder()
    assert main(["leaderboard", str(folder)]) == 0
    first = [(folder / name).read_bytes() for name in TABLES]
    assert main(["compare", str(folder)]) == 0
    assert [(folder / name).read_bytes() for name in TABLES] == first


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


def test_a_folder_without_results_is_one_clear_line(command, tmp_path, capsys):
    assert main([command, str(tmp_path / "nowhere")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert str(tmp_path / "nowhere") in captured.err


def test_the_tables_are_written_even_if_nobody_reads_the_output(command, make_folder):
    folder = make_folder()
    code = "from msda_bench.cli.main import entry; entry()"
    with subprocess.Popen([sys.executable, "-c", code, command, str(folder)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 0
    assert tables(folder) == TABLES
