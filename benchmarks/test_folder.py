"""What it takes to compare and to render 20,000 and 200,000 stored runs, by the commands of a user."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.clocks import Cost, Measured
from benchmarks.many_runs import LARGE, SHAPES, Shape, write_folder
from benchmarks.memory import can_measure
from benchmarks.results import Results

ROUNDS = 2
MADE = {"leaderboard": "leaderboard.csv", "report": "report.html"}


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


@pytest.mark.benchmark(group="folder")
@pytest.mark.parametrize("command", MADE)
def test_a_folder_of_many_records(
    benchmark: BenchmarkFixture, results: Results, folder: Path, shape: Shape, command: str
) -> None:
    if not can_measure("cpu"):
        pytest.skip("this system does not report the peak of a process's memory")
    if shape == LARGE and command == "report":
        pytest.skip("no goal for the page of 200,000 runs")
    found: list[tuple[Cost, float]] = []
    rounds = 1 if shape == LARGE else ROUNDS
    benchmark.pedantic(lambda: found.append(_run(command, folder)), rounds=rounds)  # type: ignore[no-untyped-call]
    assert (folder / MADE[command]).stat().st_size > 1000
    results.add("folder", f"{shape}: {command}", Measured.of([cost for cost, _ in found]))
    results.folders[f"{shape}: {command}"] = max(peak for _, peak in found)


def _run(command: str, folder: Path) -> tuple[Cost, float]:
    """The cost of a process, from its start to its end, and its peak of resident memory in bytes."""
    start = time.perf_counter()
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "benchmarks.command", command, str(folder)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    wall = time.perf_counter() - start
    reported = json.loads(done.stderr.splitlines()[-1])
    return Cost(reported["cpu"], wall), reported["peak"]
