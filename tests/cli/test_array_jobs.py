"""Shards as array jobs: the docs' script, in a queue that starts all of its tasks at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.results import files
from msda_bench.store import Store
from tests.cli.test_run import CELLS, SUITE

DOCS = Path(__file__).parents[2] / "docs"
MSDA_BENCH = f"""#!{sys.executable}
from msda_bench.cli.main import entry
entry()
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
INLINE = ("run", "tiny.yaml", "--device", "cpu", "--executor", "inline", "--quiet")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(SUITE.replace("EPOCHS", "2"))
    return tmp_path


def tables(folder: str) -> bytes:
    return Path(folder, "tiny/leaderboard.csv").read_bytes() + Path(folder, "tiny/comparisons.csv").read_bytes()


@pytest.mark.slow
def test_an_array_job_gives_the_bytes_of_one_run(here: Path) -> None:
    (script,) = re.findall(r"^    (#!/bin/bash\n(?:    .*\n)+)", (DOCS / "executors.md").read_text(), re.MULTILINE)
    script = script.replace("\n    ", "\n").replace("run paper", "run tiny.yaml --executor inline")
    for ask, less in (("--array=0-7", "--array=0-1"), ("-task=4", "-task=1"), ("TASK_ID/8", "TASK_ID/2")):
        assert ask in script
        script = script.replace(ask, less)
    Path("paper.sbatch").write_text(script)
    Path("bin").mkdir()
    for name, text in (("msda-bench", MSDA_BENCH), ("sbatch", SBATCH)):
        Path("bin", name).write_text(text)
        Path("bin", name).chmod(0o755)
    path = os.pathsep.join([str(here / "bin"), os.environ["PATH"]])
    environ = os.environ | {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([here / "bin/sbatch", "paper.sbatch"], check=True, capture_output=True, env=environ)
    assert len(Store(Path("results/tiny")).keys()) == CELLS
    assert main([*INLINE, "--out", "whole"]) == 0
    assert tables("results") == tables("whole")


def test_a_shard_that_ends_while_another_writes_its_tables_is_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert main([*INLINE, "--out", "whole"]) == 0
    write = files.write_results

    def write_late(*given: object) -> None:
        monkeypatch.setattr(files, "write_results", write)
        assert main([*INLINE, "--shard", "1/2"]) == 0
        write(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "write_results", write_late)
    assert main([*INLINE, "--shard", "0/2"]) == 0
    assert tables("results") == tables("whole")
