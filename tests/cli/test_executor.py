"""Options for the training processes, and shards."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from rich.console import Console

from msda_bench.cli import run as run_command
from msda_bench.cli.executor import add_options, cells_of_a_job, find_executor, make_executor
from msda_bench.cli.main import main
from msda_bench.running.execute import Executor
from msda_bench.running.progress import PlainProgress
from msda_bench.store import Store
from tests.cli.test_run import CELLS, SUITE

THEIRS = """
from msda_bench.executors import Executor, JobRunner, Noted, component, hookimpl

@component
class Backwards(Executor):
    name = "backwards"
    has_processes = False

    def run(self, jobs, store, interrupt):
        runner = JobRunner(self.setup.load(), store)
        yield Noted("trained backwards")
        for job in reversed(list(jobs)):
            yield from runner.run(job)

@hookimpl
def msda_executors():
    return [Backwards]
"""
DASK = ("--executor", "dask", "--scheduler", "tcp://127.0.0.1:1")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(SUITE.replace("EPOCHS", "2"))


def run(*options: str) -> int:
    return main(["run", "tiny.yaml", *options])


def options(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return parser.parse_args(given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            ("--scheduler", "tcp://a:1"),
            "--scheduler is not for --executor local; add that of the scheduler, such as dask",
        ),
        (DASK, "--scheduler needs --device cpu or cuda"),
        ((*DASK, "--device", "cpu", "--workers", "2"), "--workers is for this machine"),
        (("--executor", "dask", "--device", "cpu", "--scheduler", "here"), "write protocol://host:port"),
        (("--executor", "inline", "--timeout", "3"), "--timeout needs processes"),
        (("--shard", "4/4"), "--shard '4/4': write I/N, part I of N, counted from 0"),
    ],
)
def test_contradicting_options_are_one_line(
    capsys: pytest.CaptureFixture[str], given: Sequence[str], words: str
) -> None:
    assert run(*given) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert not Path("results").exists()


def test_a_missing_extra_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msda_bench_dask.find_spec", lambda _: None)
    monkeypatch.delitem(sys.modules, "distributed", raising=False)
    assert run("--executor", "dask") == 2
    wanted = "--executor dask needs dask, which is not installed: pip install 'msda-bench[dask]'"
    assert capsys.readouterr().err == f"msda-bench: error: {wanted}\n"
    assert "distributed" not in sys.modules


def test_an_unreachable_scheduler_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msda_bench_dask.cluster.ANSWER", 0.5)
    assert run(*DASK, "--device", "cpu") == 2
    error = capsys.readouterr().err
    assert "--scheduler tcp://127.0.0.1:1: no dask scheduler answers there" in error
    assert "Traceback" not in error
    assert Store(Path("results/tiny")).keys() == set()


def test_shards_fill_one_leaderboard(capsys: pytest.CaptureFixture[str]) -> None:
    inline = ("--device", "cpu", "--executor", "inline")
    assert run(*inline, "--out", "whole") == 0
    capsys.readouterr()
    trained = []
    for shard in ("0/3", "1/3", "2/3"):
        assert run(*inline, "--shard", shard) == 0
        trained.append(len(Store(Path("results/tiny")).keys()))
    assert trained == [3, 6, CELLS]
    assert run(*inline, "--shard", "1/2") == 0  # with other parts, all cells of this part are already stored
    assert "4 of 8 cells selected: 4 stored before" in capsys.readouterr().out
    assert Path("results/tiny/leaderboard.csv").read_bytes() == Path("whole/tiny/leaderboard.csv").read_bytes()


def executor(*given: str) -> Executor:
    args = options(*given)
    return make_executor(args, find_executor(args), "cuda")


def test_there_is_one_worker_per_gpu_and_one_job_per_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert executor().workers == 4
    assert cells_of_a_job(executor(), 100) == 25
    assert cells_of_a_job(executor("--stack", "8"), 100) == 8
    assert cells_of_a_job(executor("--workers", "1"), 100) == 64
    assert cells_of_a_job(executor("--executor", "inline"), 20) == 20
    assert cells_of_a_job(executor(*DASK, "--device", "cuda"), 100) == 64
    assert cells_of_a_job(executor(), 0) == 1


def test_another_distributions_executor_trains_the_same_records(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--device", "cpu", "--executor", "inline", "--out", "inline") == 0
    Path("their_package.py").write_text(THEIRS)
    monkeypatch.syspath_prepend(Path.cwd())
    Path("theirs-1.0.dist-info").mkdir()
    Path("theirs-1.0.dist-info/METADATA").write_text("Name: theirs\nVersion: 1.0\n")
    Path("theirs-1.0.dist-info/entry_points.txt").write_text("[msda_bench.executors]\ntheirs = their_package\n")
    assert run("--device", "cpu", "--executor", "backwards") == 0
    assert "trained backwards" in capsys.readouterr().err
    first, second = (Path(out, "tiny/leaderboard.csv").read_bytes() for out in ("inline", "results"))
    assert first == second


def test_no_bar_is_drawn_over_a_debugger() -> None:
    terminal, piped = Console(force_terminal=True), Console(force_terminal=False)
    assert isinstance(run_command._observer(executor("--executor", "inline"), terminal), PlainProgress)
    assert not isinstance(run_command._observer(executor("--workers", "1"), terminal), PlainProgress)
    assert isinstance(run_command._observer(executor("--workers", "1"), piped), PlainProgress)
