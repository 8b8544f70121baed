"""`leaderboard` and what it shares with `compare`, on folders that the store has written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome, Record, Store
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell

KEYS = {(name, seed): f"{index:x}{seed:x}" * 32 for index, name in enumerate("ab") for seed in range(6)}
TABLES = ["comparisons.csv", "leaderboard.csv", "runs.csv"]


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):  # a tester's wish for colours is not for the text tested here
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["leaderboard", "compare"])
def command(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., Path]:
    """A result folder; a run in `failed` is a failure, one in `missing` is not there."""

    def make(failed: tuple = (), missing: tuple = ()) -> Path:
        methods = (Method("a", False, "", ()), Method("b", False, "", ()))
        experiment = Experiment("toy", "toy", "classification", ("x",), methods, tuple(range(6)))
        cells = tuple(PlannedCell("toy", name, "x", seed, key) for (name, seed), key in KEYS.items())
        store = Store.create(tmp_path / "results")
        store.write_plan(Plan("suite", (experiment,), cells))
        for (name, seed), key in KEYS.items():
            if (name, seed) in failed:
                store.publish(Record(key, {}, "failed", message="ValueError: no"))
            elif (name, seed) not in missing:
                store.publish(Record(key, {}, "ok", Outcome(100, n_correct=50 + seed + 10 * (name == "b"))))
        return store.folder

    return make


def tables(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.csv"))


def test_prints_and_writes(command, make_folder, capsys):
    folder = make_folder()
    assert main([command, str(folder)]) == 0
    assert tables(folder) == TABLES
    out = capsys.readouterr().out
    assert ("62.50 +- 0.76*" in out) == (command == "leaderboard")
    assert ("b > a" in out) == (command == "compare")


def test_failed_and_missing_runs_are_named(command, make_folder, capsys):
    folder = make_folder(failed=(("a", 2),), missing=(("b", 3), ("b", 5)))
    assert main([command, str(folder)]) == 1
    out = capsys.readouterr().out.replace("\n  ", " ")
    assert "problem: toy: a: 1 of 6 runs failed, first at target x, seed 2: ValueError: no" in out
    assert "problem: toy: b: 2 of 6 runs missing, first at target x, seed 3" in out
    assert tables(folder) == TABLES


def test_a_damaged_record_is_named(command, make_folder, capsys):
    folder = make_folder()
    path = Store(folder).path(KEYS["a", 1])
    path.write_bytes(path.read_bytes()[:-20])
    assert main([command, str(folder)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"msda-bench: {path}: ")
    assert "toy: a: 1 of 6 runs missing" in captured.out


def test_results_in_conflict_are_named(command, make_folder, capsys):
    folder = make_folder()
    Store(folder).publish(Record(KEYS["a", 1], {}, "ok", Outcome(100, n_correct=1)))
    assert main([command, str(folder)]) == 1
    path = Store(folder).path(KEYS["a", 1]).with_suffix(".conflict-1.json")
    assert capsys.readouterr().err == f"msda-bench: {path}: another result for the same cell\n"
    assert tables(folder) == TABLES


def test_again_writes_the_same_bytes(make_folder):
    folder = make_folder()
    assert main(["leaderboard", str(folder)]) == 0
    first = [(folder / name).read_bytes() for name in TABLES]
    assert main(["compare", str(folder)]) == 0
    assert [(folder / name).read_bytes() for name in TABLES] == first


def test_what_is_no_result_folder_is_one_clear_line(command, tmp_path, capsys):
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
