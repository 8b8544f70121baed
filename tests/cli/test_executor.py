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
from msda_bench.cli.executor import add_options, cells_of_a_job, make_executor
from msda_bench.cli.main import main
from msda_bench.running.executors.dask import DaskExecutor
from msda_bench.running.local import LocalExecutor
from msda_bench.running.progress import PlainProgress
from msda_bench.store import Store
from tests.cli.test_run import CELLS, SUITE

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
        (("--scheduler", "tcp://a:1"), "--scheduler names a dask cluster; add --executor dask"),
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
    monkeypatch.setattr("msda_bench.cli.executor.find_spec", lambda _: None)
    monkeypatch.delitem(sys.modules, "distributed", raising=False)
    assert run("--executor", "dask") == 2
    wanted = "--executor dask needs dask, which is not installed: pip install 'msda-bench[dask]'"
    assert capsys.readouterr().err == f"msda-bench: error: {wanted}\n"
    assert "distributed" not in sys.modules


def test_an_unreachable_scheduler_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msda_bench.running.executors.cluster.ANSWER", 0.5)
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


def test_there_is_one_worker_per_gpu_and_one_job_per_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    executor = make_executor(options("--executor", "local"), "cuda")
    assert isinstance(executor, LocalExecutor)
    assert executor.workers == 4
    assert cells_of_a_job(options(), "cuda", 100) == 25
    assert cells_of_a_job(options("--stack", "8"), "cuda", 100) == 8
    assert cells_of_a_job(options("--workers", "1"), "cuda", 100) == 64
    assert cells_of_a_job(options("--executor", "inline"), "cuda", 20) == 20
    assert cells_of_a_job(options(*DASK), "cuda", 100) == 64
    assert cells_of_a_job(options(), "cuda", 0) == 1
    assert cells_of_a_job(options(), "cpu", 100) == 1


def test_a_named_cluster_is_used() -> None:
    executor = make_executor(options(*DASK, "--device", "cpu"), "cpu")
    assert isinstance(executor, DaskExecutor)
    assert executor.scheduler == "tcp://127.0.0.1:1"


def test_no_bar_is_drawn_over_a_debugger() -> None:
    terminal = Console(force_terminal=True)
    assert isinstance(run_command._observer(argparse.Namespace(executor="inline"), terminal), PlainProgress)
    assert not isinstance(run_command._observer(argparse.Namespace(executor="local"), terminal), PlainProgress)
    piped = Console(force_terminal=False)
    assert isinstance(run_command._observer(argparse.Namespace(executor="local"), piped), PlainProgress)
