"""What it takes to store, compare and render runs: cells of an Amazon-shaped suite; 20,000 and 200,000 stored runs."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.workload import expansion
from msda_bench.plugins import Registry
from msda_bench.running.runner import missing_runs
from msda_bench.store import Outcome, Record, Store
from msda_bench.store.record import Curves
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedRun

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
_EPOCHS, _SOURCES = 50, ("first", "second", "third")
_PROVENANCE = {"device": "cpu", "platform": "Linux-6.1-x86_64-with-glibc2.36", "stack": 1, "torch": "2.11.0+cpu"}
cells = pytest.mark.benchmark(group="480 cells", timer=time.process_time)


class Shape(NamedTuple):
    """How many there are of each; the more methods, the more pairs; the more seeds, the dearer each."""

    methods: int
    targets: int
    seeds: int


MANY, LARGE = Shape(10, 20, 100), Shape(20, 50, 200)
"""Of 20,000 and of 200,000 runs."""


def many_runs(shape: Shape) -> tuple[Plan, Iterator[Record]]:
    """Accuracies of 2,000 test examples, each method a little better than the one before, with ties.

    Each record has the curves of 50 epochs and three sources.
    """
    rows = tuple(
        Method(f"m{number}", reference=False, recipe="made", distributions=()) for number in range(shape.methods)
    )
    columns, seeds = tuple(f"t{number}" for number in range(shape.targets)), tuple(range(shape.seeds))
    table = Experiment("made", "made", "classification", columns, rows, seeds, baseline="m0")
    cells = tuple(
        PlannedRun("made", method.name, target, seed, sha256(f"{method.name} {target} {seed}".encode()).hexdigest())
        for method, target, seed in product(rows, columns, seeds)
    )
    return Plan("made", (table,), cells), _records(cells)


def _records(cells: Iterable[PlannedRun]) -> Iterator[Record]:
    draw = random.Random(0)  # noqa: S311
    pool = [_curves(draw) for _ in range(50)]
    for cell in cells:
        outcome = Outcome(2000, n_correct=1500 + 3 * int(cell.method[1:]) + draw.randrange(100))
        yield Record(
            cell.key,
            {},
            "ok",
            outcome,
            curves=draw.choice(pool),
            timing={"train": round(draw.uniform(1, 40), 4), "steps": 5000},
            validation={name: round(draw.random(), 6) for name in ("density_ratio", "source_accuracy")},
            provenance=_PROVENANCE,
        )


def _curves(draw: random.Random) -> Curves:
    risks, gaps, weights = (
        [[round(draw.random(), 6) for _ in _SOURCES] for _ in range(_EPOCHS)] for _ in ("risks", "gaps", "weights")
    )
    return Curves([[source] for source in _SOURCES], risks, gaps, weights)


@cells
def test_load_and_expand(benchmark: BenchmarkFixture, registry: Registry) -> None:
    assert len(benchmark.pedantic(expansion, ("amazon", registry), rounds=5).cells) == 480  # type: ignore[no-untyped-call]


@cells
def test_publish(benchmark: BenchmarkFixture, registry: Registry, tmp_path: Path) -> None:
    """The plan, and a record a cell."""
    plan, made = many_runs(Shape(6, 4, 20))
    records, numbers = list(made), itertools.count()

    def run() -> None:
        store = Store.create(tmp_path / str(next(numbers)))
        store.write_plan(plan)
        assert all(store.publish(record) for record in records)

    benchmark.pedantic(run, rounds=5)  # type: ignore[no-untyped-call]
    found, store = expansion("amazon", registry), Store.create(tmp_path / "none")
    start = time.process_time()
    assert len(missing_runs(found, store).to_train) == len(found.cells)
    benchmark.extra_info["finding what is missing, ms a cell"] = 1e3 * (time.process_time() - start) / 480


@pytest.fixture(
    scope="module",
    params=[MANY, pytest.param(LARGE, marks=pytest.mark.slow)],
    ids=lambda shape: "x".join(map(str, shape)),
)
def shape(request: pytest.FixtureRequest) -> Shape:
    found: Shape = request.param
    return found


@pytest.fixture(scope="module")
def folder(shape: Shape, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "results"
    plan, records = many_runs(shape)
    with patch("os.fsync"):  # the disk's waits are no CPU time
        store = Store.create(path)
        store.write_plan(plan)
        assert all(store.publish(record) for record in records)
        store.seal()
    return path


@pytest.mark.benchmark(group="a folder of many records, by the commands of a user")
@pytest.mark.parametrize("command", MADE)
def test_a_folder_of_many_records(benchmark: BenchmarkFixture, folder: Path, shape: Shape, command: str) -> None:
    """A process, from its start to its end."""
    if shape == LARGE and command == "report":
        pytest.skip("no goal for the page of 200,000 runs")

    def run() -> None:
        words = [sys.executable, "-c", COMMAND, command, str(folder)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        benchmark.extra_info.update(json.loads(done.stderr.splitlines()[-1]))

    benchmark.pedantic(run, rounds=1 if shape == LARGE else 2)  # type: ignore[no-untyped-call]
    assert (folder / MADE[command]).stat().st_size > 1000
