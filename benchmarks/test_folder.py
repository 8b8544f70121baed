"""What it takes to store, compare and render runs: cells of an Amazon-shaped suite; 20,000 and 200,000 stored runs."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.costs import can_measure
from benchmarks.many_runs import LARGE, SHAPES, Shape, many_runs, write_folder
from benchmarks.workload import expansion
from msda_bench.plugins import Registry
from msda_bench.running.runner import survey
from msda_bench.store import Store

MADE = {"leaderboard": "leaderboard.csv", "report": "report.html"}
COMMAND = """
import json, pathlib, sys, time
from msda_bench.cli.main import main
code = main(sys.argv[1:])
lines = pathlib.Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
print(json.dumps({"CPU s": time.process_time(), "peak MB": peak / 1e6}), file=sys.stderr)
sys.exit(code)
"""
cells = pytest.mark.benchmark(group="480 cells", timer=time.process_time)


@cells
def test_load_and_expand(benchmark: BenchmarkFixture, registry: Registry) -> None:
    assert len(benchmark.pedantic(expansion, ("amazon", registry), rounds=5).cells) == 480  # type: ignore[no-untyped-call]


@cells
def test_publish(benchmark: BenchmarkFixture, registry: Registry, tmp_path: Path) -> None:
    """The plan, and a record a cell; the disk's waits are no CPU time."""
    plan, made = many_runs(Shape(6, 4, 20))
    records, numbers = list(made), itertools.count()

    def run() -> None:
        store = Store.create(tmp_path / str(next(numbers)))
        store.write_plan(plan)
        assert all(store.publish(record) for record in records)

    benchmark.pedantic(run, rounds=5)  # type: ignore[no-untyped-call]
    found, store = expansion("amazon", registry), Store.create(tmp_path / "none")
    start = time.process_time()
    assert len(survey(found, store).missing) == len(found.cells)
    benchmark.extra_info["finding what is missing, ms a cell"] = 1e3 * (time.process_time() - start) / 480


@pytest.fixture(
    scope="module",
    params=[SHAPES[0], *(pytest.param(shape, marks=pytest.mark.slow) for shape in (*SHAPES[1:], LARGE))],
    ids=lambda shape: "x".join(map(str, shape)),
)
def shape(request: pytest.FixtureRequest) -> Shape:
    found: Shape = request.param
    return found


@pytest.fixture(scope="module")
def folder(shape: Shape, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "results"
    write_folder(path, shape)
    return path


@pytest.mark.benchmark(group="a folder of many records, by the commands of a user")
@pytest.mark.parametrize("command", MADE)
def test_a_folder_of_many_records(benchmark: BenchmarkFixture, folder: Path, shape: Shape, command: str) -> None:
    """A process, from its start to its end."""
    if not can_measure("cpu"):
        pytest.skip("this system does not report the peak of a process's memory")
    if shape == LARGE and command == "report":
        pytest.skip("no goal for the page of 200,000 runs")

    def run() -> None:
        words = [sys.executable, "-c", COMMAND, command, str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        benchmark.extra_info.update(json.loads(done.stderr.splitlines()[-1]))

    benchmark.pedantic(run, rounds=1 if shape == LARGE else 2)  # type: ignore[no-untyped-call]
    assert (folder / MADE[command]).stat().st_size > 1000
