"""Executors, workers, shards, and array jobs: the docs' script, in a queue that starts all of its tasks at once."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from msda_bench.cli.main import main
from msda_bench.results import files
from msda_bench.running.options import RunOptions
from msda_bench.running.resources import find_executor, make_executor, runs_of_a_job
from msda_bench.store import Store
from tests.cli.conftest import CELLS, ENTRY, INLINE

pytestmark = pytest.mark.usefixtures("tiny")
DOCS = Path(__file__).parents[2] / "docs"
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
SBATCH = f"""#!{sys.executable}
import os, pathlib, re, subprocess, sys
script = pathlib.Path(sys.argv[1])
asked = dict(re.findall(r"^#SBATCH --([a-z-]+)=(\\S+)$", script.read_text(), re.MULTILINE))
first, last = map(int, asked["array"].split("-"))
environ = os.environ | {{"SLURM_CPUS_PER_TASK": asked["cpus-per-task"]}}
tasks = [
    subprocess.Popen(["bash", str(script)], env=environ | {{"SLURM_ARRAY_TASK_ID": str(task)}})
    for task in range(first, last + 1)
]
sys.exit(any([task.wait() for task in tasks]))
"""


def run(*options):
    return main([*INLINE, *options])


def tables(folder):
    return Path(folder, "tiny/leaderboard.csv").read_bytes() + Path(folder, "tiny/comparisons.csv").read_bytes()


def test_dask_that_is_missing_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr("msda_bench_dask.find_spec", lambda _: None)
    assert run("--executor", "dask", "--device", "cpu", "--scheduler", "tcp://127.0.0.1:1") == 2
    wanted = "--executor dask needs dask, which is not installed: pip install '.[dask]' in the clone"
    assert capsys.readouterr().err == f"msda-bench: error: {wanted}\n"


def test_a_shard_that_ends_while_another_writes_its_tables_is_in_them(monkeypatch):
    assert run("--out", "whole") == 0
    write = files.write_results

    def write_late(*given):
        monkeypatch.setattr(files, "write_results", write)
        assert run("--shard", "1/2") == 0
        write(*given)

    monkeypatch.setattr(files, "write_results", write_late)
    assert run("--shard", "0/2") == 0
    assert tables("results") == tables("whole")


@pytest.mark.parametrize("tasks", [2, pytest.param(20, marks=pytest.mark.nightly)])
def test_an_array_job_gives_the_bytes_of_one_run(tiny, tasks):
    (script,) = re.findall(r"^    (#!/bin/bash\n(?:    .*\n)+)", (DOCS / "executors.md").read_text(), re.MULTILINE)
    script = script.replace("\n    ", "\n").replace("run paper", "run tiny.yaml --executor inline")
    for ask, less in (
        ("--array=0-7", f"--array=0-{tasks - 1}"),
        ("-task=4", "-task=1"),
        ("TASK_ID/8", f"TASK_ID/{tasks}"),
    ):
        assert ask in script
        script = script.replace(ask, less)
    Path("paper.sbatch").write_text(script)
    Path("bin").mkdir()
    for name, text in (("msda-bench", f"#!{ENTRY[0]}\n{ENTRY[2]}\n"), ("sbatch", SBATCH)):
        Path("bin", name).write_text(text)
        Path("bin", name).chmod(0o755)
    path = os.pathsep.join([str(tiny / "bin"), os.environ["PATH"]])
    environ = os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([tiny / "bin/sbatch", "paper.sbatch"], check=True, capture_output=True, env=environ)
    assert len(Store(Path("results/tiny")).refresh().results.keys()) == CELLS
    assert run("--out", "whole") == 0
    assert tables("results") == tables("whole")


def executor(warn=pytest.fail, **given):
    options = RunOptions(suite=Path("tiny.yaml"), **given)
    return make_executor(options, find_executor(options, warn), "cuda", warn)


def test_there_is_one_worker_per_gpu_and_one_job_per_worker(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert executor().workers == 4
    for options, runs, of_a_job in (
        ({}, 100, 25),
        ({"stack": 8}, 100, 8),
        ({"workers": 1}, 100, 64),
        ({"executor": "inline"}, 20, 20),
        ({"executor": "dask", "scheduler": "tcp://127.0.0.1:1", "device": "cuda"}, 100, 64),
        ({}, 0, 1),
    ):
        assert runs_of_a_job(executor(**options), runs) == of_a_job
    said = []
    assert executor(said.append, workers=6).workers == 6
    assert said == ["--workers 6: workers that share 4 GPUs take longer than one each; leave --workers out"]


def test_another_distributions_executor_trains_the_same_records(install, capsys):
    assert run("--out", "inline") == 0
    install("theirs", THEIRS, group="msda_bench.executors")
    assert run("--executor", "backwards") == 0
    assert "trained backwards" in capsys.readouterr().err
    assert tables("inline") == tables("results")
