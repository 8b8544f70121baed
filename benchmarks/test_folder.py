"""What it takes to store, compare and render runs: 480 cells; 20,000 to a million stored runs; the recorded folders."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.workload import expansion
from msda_bench.plugins import Registry
from msda_bench.running.runner import missing_runs
from msda_bench.store import Outcome, Record, Store
from msda_bench.store.log import SEALED
from msda_bench.store.record import Curves
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedRun
from msda_bench.suite.run_spec import canonical_json

MADE = {"leaderboard": "leaderboard.csv", "report": "report.html"}
RESULTS = Path(__file__).parents[1] / "results"
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


MANY, LARGE, HUGE = Shape(10, 20, 100), Shape(20, 50, 200), Shape(50, 100, 200)
"""Of 20,000, of 200,000 and of a million runs."""
_MEMBER = 1 << 18


def many_runs(shape: Shape) -> tuple[Plan, Iterator[dict[str, Any]]]:
    """A plan, and the cell of each of its runs as plain JSON."""
    rows = tuple(
        Method(f"m{number}", reference=False, recipe="made", distributions=()) for number in range(shape.methods)
    )
    columns, seeds = tuple(f"t{number}" for number in range(shape.targets)), tuple(range(shape.seeds))
    table = Experiment("made", "made", "classification", columns, rows, seeds, baseline="m0")
    places = [*product((method.name for method in rows), columns, seeds)]
    runs = tuple(PlannedRun("made", *place, _key(_cell(*place))) for place in places)
    return Plan("made", (table,), runs), (_cell(*place) for place in places)


def _cell(method: str, target: str, seed: int) -> dict[str, Any]:
    dataset = {"name": "made", "params": {"train": 2000}}
    return {"dataset": dataset, "method": method, "seed": seed, "target": target}


def _key(cell: dict[str, Any]) -> str:
    return sha256(canonical_json(cell).encode()).hexdigest()


def _about(cell: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """The rest of a record but for its curves: 2,000 examples, each method a little better than the one before."""
    right = 1500 + 3 * int(cell["method"][1:]) + draw.randrange(100)
    return {
        "key": _key(cell),
        "cell": cell,
        "status": "ok",
        "outcome": Outcome(2000, n_correct=right),
        "timing": {"train": round(draw.uniform(1, 40), 4), "steps": 5000},
        "validation": {name: round(draw.random(), 6) for name in ("density_ratio", "source_accuracy")},
        "provenance": _PROVENANCE,
    }


def _records(made: Iterable[dict[str, Any]]) -> Iterator[Record]:
    """The records of these cells, each with the curves of 50 epochs and three sources."""
    draw = random.Random(0)  # noqa: S311
    pool = [_curves(draw) for _ in range(50)]
    for cell in made:
        yield Record(**_about(cell, draw), curves=draw.choice(pool))


def _lines(made: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """The lines of such records; each set of curves is written as JSON once, so that a million take minutes."""
    draw = random.Random(0)  # noqa: S311
    pool = [canonical_json(vars(_curves(draw))) for _ in range(50)]
    empty = {"bound": {}, "message": None, "target_labels": False, "curves": "CURVES"}
    for cell in made:
        fields = empty | _about(cell, draw)
        fields["outcome"] = {"n_correct": fields["outcome"].n_correct, "n_test": 2000, "sum_squared_error": None}
        text = canonical_json({"record": fields, "schema": 1}).replace('"CURVES"', draw.choice(pool))
        yield b'%s,"sha256":"%s"}\n' % (text[:-1].encode(), sha256(text.encode()).hexdigest().encode())


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
    records, numbers = list(_records(made)), itertools.count()

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
    params=[MANY, pytest.param(LARGE, marks=pytest.mark.slow), pytest.param(HUGE, marks=pytest.mark.slow)],
    ids=lambda shape: "x".join(map(str, shape)),
)
def shape(request: pytest.FixtureRequest) -> Shape:
    found: Shape = request.param
    return found


@pytest.fixture(scope="module")
def folder(shape: Shape, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "results"
    plan, made = many_runs(shape)
    Store.create(path).write_plan(plan)
    text = bytearray()
    with (path / SEALED).open("wb") as stream:
        for line in _lines(made):
            text += line
            if len(text) >= _MEMBER:
                stream.write(gzip.compress(text, 1))
                text.clear()
        stream.write(gzip.compress(text, 1) + gzip.compress(b""))
    return path


@pytest.mark.benchmark(group="a folder of many records, by the commands of a user")
@pytest.mark.parametrize("command", MADE)
def test_a_folder_of_many_records(benchmark: BenchmarkFixture, folder: Path, shape: Shape, command: str) -> None:
    """A process, from its start to its end."""
    if shape != MANY and command == "report":
        pytest.skip("no goal for the page of so many runs")
    _measure(benchmark, [command, str(folder)], rounds=2 if shape == MANY else 1)
    assert (folder / MADE[command]).stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.benchmark(group="the recorded folders, by the commands of a user")
@pytest.mark.parametrize("command", ["report", "site"])
def test_recorded_folders(benchmark: BenchmarkFixture, tmp_path: Path, command: str) -> None:
    """The page of `registered`, and the site of all folders."""
    folders = [shutil.copytree(path, tmp_path / path.name) for path in sorted(RESULTS.glob("*/"))]
    words = ["site", *map(str, folders), "--out", str(tmp_path / "site")]
    if command == "report":
        words = ["report", str(tmp_path / "registered")]
    _measure(benchmark, words, rounds=1)


def _measure(benchmark: BenchmarkFixture, words: list[str], rounds: int) -> None:
    """Measures a command as a process, from its start to its end; fails if it does."""

    def run() -> None:
        done = subprocess.run([sys.executable, "-c", COMMAND, *words], capture_output=True, text=True, check=False)
        assert done.returncode in {0, 1}, done.stderr  # 1: some recorded runs have failed
        benchmark.extra_info.update(json.loads(done.stderr.splitlines()[-1]))

    benchmark.pedantic(run, rounds=rounds)  # type: ignore[no-untyped-call]
