"""`msda-bench run`, end to end with the real engine on a suite that takes seconds."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from msda_bench.cli.main import main
from msda_bench.engine import machine
from msda_bench.running import execute
from msda_bench.store import Record, Store
from msda_bench.suite.cell import Cell

SUITE = """
schema: 1
name: tiny
dataset: {sine: {train: 20, test: 20}}
targets: [target_0, target_1]
seeds: 2
backbone: linear
training: {epochs: EPOCHS, batch: 5, steps: 3, optimizer: {adam: {lr: 0.01}}}
methods:
  SRC: {scheme: pooled}
  DARN: {discrepancy: spectral_l2, mu: 0.01, aggregator: {sharpmax: {gamma: 1.0}}}
"""
TWIN = """
    from msda_bench.api import Validator, component, hookimpl

    @component
    class Twin(Validator):
        name = "twin"

        def score(self, view):
            return 1.0

    @hookimpl
    def msda_validators():
        return [Twin]
"""
CELLS = 8
ENTRY = [sys.executable, "-c", "from msda_bench.cli.main import entry; entry()"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(SUITE.replace("EPOCHS", "2"))
    return tmp_path


def run(*options: str) -> int:
    return main(["run", "tiny.yaml", "--device", "cpu", "--executor", "inline", *options])


def stored(folder: str = "results/tiny") -> dict[str, Record]:
    store = Store(Path(folder))
    return store.results(store.keys())


def files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path("results").rglob("*") if path.is_file()}


def test_a_suite_is_trained_once_and_its_leaderboard_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    first = capsys.readouterr()
    assert "DARN" in first.out
    assert f"{CELLS} of {CELLS} cells selected: {CELLS} trained" in first.out
    assert len(stored()) == CELLS
    before = files()
    assert {"results/tiny/plan.json", "results/tiny/leaderboard.csv", "results/tiny/comparisons.csv"} <= before.keys()
    assert run() == 0
    again = capsys.readouterr()
    assert f"{CELLS} stored before" in again.out
    assert again.err == ""
    assert files() == before
    assert run("--quiet") == 0
    quiet = capsys.readouterr()
    assert quiet.err == ""
    assert set(quiet.out.splitlines()) < set(first.out.splitlines())


def test_processes_give_the_same_results_to_the_last_bit() -> None:
    assert run() == 0
    assert run("--executor", "local", "--workers", "2", "--out", "other") == 0
    inline, local = stored(), stored("other/tiny")
    bare = {key: replace(record, timing={}, provenance={}) for key, record in inline.items()}
    assert {key: replace(record, timing={}, provenance={}) for key, record in local.items()} == bare
    assert Path("other/tiny/leaderboard.csv").read_bytes() == Path("results/tiny/leaderboard.csv").read_bytes()


def test_a_dry_run_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--dry-run") == 0
    assert f"0 cells stored, {CELLS} to train; nothing was changed" in capsys.readouterr().out
    assert not Path("results").exists()
    assert run("--only", "method=SRC") == 0
    before = files()
    assert run("--dry-run") == 0
    assert "4 cells stored, 4 to train" in capsys.readouterr().out
    assert files() == before


def test_a_part_of_a_suite_runs_first_and_the_rest_later(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--only", "method=DARN,seed=0") == 0
    assert f"2 of {CELLS} cells selected: 2 trained" in capsys.readouterr().out
    assert run("--limit", "3") == 0
    assert "2 stored before, 3 trained, 3 skipped by --limit" in capsys.readouterr().out
    assert run() == 0
    assert "5 stored before, 3 trained" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["run", "--dry-run", "--quiet"], ["validate"]])
def test_unusable_plugins_are_named_and_do_not_affect_the_run(
    install: Callable[..., None], capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    install("broken-stranger", "raise OSError('no')")
    for owner in ("one", "two"):
        install(owner, TWIN)
    assert main([*command, "tiny.yaml"]) == 0
    what = "entry point 'plugin' (broken_stranger): broken_stranger.py:1: OSError: no"
    assert capsys.readouterr().err.splitlines() == [
        f"msda-bench: warning: broken-stranger 1.0: {what}",
        "msda-bench: warning: validator 'twin' is claimed by one 1.0 and two 1.0; uninstall one of them",
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--only", "method=NONE"), "NONE"),
        (("--timeout", "3"), "--timeout needs processes"),
        (("--only", ""), "selection ''"),
        (("--workers", "0"), "--workers: must be a whole number of at least 1, not '0'"),
        (("--limit", "abc"), "--limit: must be a whole number of at least 1, not 'abc'"),
        (("--timeout", "nan"), "--timeout: must be a number of seconds above 0, not 'nan'"),
        (("--timeout", "abc"), "--timeout: must be a number of seconds above 0, not 'abc'"),
        (("--device", "tpu"), "tpu"),
    ],
)
def test_bad_usage_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str], options: Sequence[str], words: str
) -> None:
    assert run(*options) == 2
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error
    assert not Path("results").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_missing_gpu_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--device", "cuda") == 2
    assert capsys.readouterr().err == "msda-bench: error: --device cuda: PyTorch finds no GPU here; use --device cpu\n"


def test_the_slower_path_is_reported_and_recorded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "can_compile", lambda: False)
    assert run() == 0
    assert "numba cannot be used here: runs on the CPU take the slower plain loops" in capsys.readouterr().err
    assert {record.provenance["numba"] for record in stored().values()} == {None}


def test_missing_data_are_reported_before_anything_is_trained(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("empty").mkdir()
    monkeypatch.setenv("MSDA_BENCH_DATA", "empty")
    monkeypatch.setenv("MSDA_BENCH_CACHE", "cache")
    text = SUITE.replace("sine: {train: 20, test: 20}", "amazon: {train: 20, test: 20}").replace("EPOCHS", "1")
    text = text.replace("[target_0, target_1]", "[books]").replace("backbone: linear", "backbone: {mlp: {hidden: [4]}}")
    Path("tiny.yaml").write_text(text.replace("spectral_l2", "d_A"))
    assert run() == 2
    errors = capsys.readouterr().err.splitlines()
    assert all(line.startswith("msda-bench: error: ") and "msda-bench data fetch amazon" in line for line in errors)
    assert not Path("results").exists()


def test_a_result_folder_that_is_a_link_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("elsewhere").mkdir()
    Path("results").mkdir()
    Path("results/tiny").symlink_to(Path("elsewhere").absolute())
    assert run() == 2
    assert "symbolic link" in capsys.readouterr().err
    assert list(Path("elsewhere").iterdir()) == []


def test_an_edited_suite_trains_only_changed_cells(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    Path("tiny.yaml").write_text(SUITE.replace("EPOCHS", "2").replace("gamma: 1.0", "gamma: 2.0"))
    assert run() == 0
    shown = capsys.readouterr()
    assert "the suite has changed; 4 stored cells are no longer in it" in shown.err
    assert "4 stored before, 4 trained" in shown.out
    assert len(stored()) == CELLS + 4
    keys = {cell["key"] for cell in json.loads(Path("results/tiny/plan.json").read_bytes())["cells"]}
    assert keys < stored().keys()


def test_a_damaged_record_and_plan_are_reported_and_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    before = {key: replace(record, timing={}, provenance={}) for key, record in stored().items()}
    key = min(before)
    Store(Path("results/tiny")).path(key).write_bytes(b"{}")
    Path("results/tiny/plan.json").write_text("{")
    capsys.readouterr()
    assert run("--quiet") == 0
    assert f"{key}.json: is truncated or not a record; now {key}.bad-1" in capsys.readouterr().err
    assert {key: replace(record, timing={}, provenance={}) for key, record in stored().items()} == before
    assert main(["store", "verify", "results/tiny"]) == 0


def test_a_cell_that_fails_is_named_and_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = execute.engine

    def faulty(device: str, stack: int | None) -> Callable[[Sequence[Cell]], Iterable[Record]]:
        train = engine(device, stack)

        def wrapped(cells: Sequence[Cell]) -> Iterable[Record]:
            if cells[0].scheme.name == "adapt" and cells[0].seed == 1:
                raise RuntimeError("a plugin's bug")
            return train(cells)

        return wrapped

    with monkeypatch.context() as patch:
        patch.setattr(execute, "engine", faulty)
        assert run() == 1
    shown = capsys.readouterr()
    assert shown.err.count("failed: RuntimeError: a plugin's bug") == 2
    assert "6 trained, 2 failed, 2 without a result" in shown.out
    assert "a plugin's bug" in shown.out
    assert run() == 0
    assert "6 stored before, 2 trained" in capsys.readouterr().out


def test_a_finished_run_imports_nothing_unnecessary() -> None:
    assert run() == 0
    code = "import sys; from msda_bench.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", code, "run", "tiny.yaml"]
    modules = subprocess.run(command, capture_output=True, check=True, text=True).stderr.split()
    assert "torch" in modules
    assert {"matplotlib", "numba", "msda_bench.engine.train"}.isdisjoint(modules)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=str)
def test_a_rerun_finishes_a_stopped_or_killed_run(number: signal.Signals) -> None:
    Path("tiny.yaml").write_text(SUITE.replace("EPOCHS", "10"))
    command = [*ENTRY, "run", "tiny.yaml", "--device", "cpu", "--workers", "1"]
    runner = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while runner.poll() is None and not list(Path().glob("results/tiny/cells/*/*.json")):
        time.sleep(0.02)
    runner.send_signal(number)
    _, errors = runner.communicate(timeout=10)
    if number != signal.SIGKILL:
        assert runner.returncode == 130
        assert b"interrupted; run the same command again to resume" in errors
        assert b"Traceback" not in errors
    assert run() == 0
    assert run("--out", "undisturbed") == 0
    assert main(["store", "verify", "results/tiny"]) == 0
    assert Path("results/tiny/leaderboard.csv").read_bytes() == Path("undisturbed/tiny/leaderboard.csv").read_bytes()


def test_options_for_a_gpu_are_refused_on_the_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--stack", "4") == 2
    assert "--stack is for a GPU; on the CPU every cell trains alone" in capsys.readouterr().err
    path = Path("tiny.yaml")
    path.write_text(path.read_text().replace("epochs:", "precision: tf32, epochs:"))
    assert run() == 2
    assert "precision tf32, which only a GPU has; on the CPU use float32 or bf16" in capsys.readouterr().err
    assert not list(Path().rglob("cells/*/*.json"))
