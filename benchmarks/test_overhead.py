"""What a cell costs without its training, for the 480 cells of an Amazon-shaped table."""

from __future__ import annotations

import contextlib
import io
import itertools
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.clocks import measure
from benchmarks.results import Results
from benchmarks.workload import expansion
from msda_bench.cli.main import main
from msda_bench.plugins import Registry
from msda_bench.running.runner import survey
from msda_bench.store.record import Curves, Outcome, Record
from msda_bench.store.store import Store
from msda_bench.suite.cell import Cell
from msda_bench.suite.expand import Expansion

ROUNDS = 5
cost = pytest.mark.benchmark(group="overhead", timer=time.process_time)


@pytest.fixture(scope="module")
def amazon(registry: Registry) -> Expansion:
    return expansion("amazon", registry)


@pytest.fixture(scope="module")
def records(amazon: Expansion) -> list[Record]:
    """Records of the size of real ones, with results that differ."""
    return [_record(key, cell, place) for place, (key, cell) in enumerate(amazon.cells.items())]


def _record(key: str, cell: Cell, place: int) -> Record:
    numbers = [[round(0.5 + 0.001 * place / (1 + epoch), 6)] * 3 for epoch in range(cell.training.epochs)]
    return Record(
        key=key,
        cell=cell.to_json(),
        status="ok",
        outcome=Outcome(n_test=5000, n_correct=4000 + place * 37 % 101),
        curves=Curves([[source] for source in cell.sources], numbers, numbers, numbers),
        bound={"weights_norm": 0.6, "effective_sample_size": 5555.5},
        validation={"source_accuracy": 0.8},
        timing={"train": 50.0, "steps": 5000},
        provenance={"device": "cpu", "stack": 1},
    )


@cost
def test_load_and_expand(benchmark: BenchmarkFixture, results: Results, registry: Registry, amazon: Expansion) -> None:
    found = measure(benchmark, lambda: expansion("amazon", registry), ROUNDS, parts=len(amazon.cells))
    results.add("overhead", "suite: load and expand", found)


@cost
def test_plan(benchmark: BenchmarkFixture, results: Results, amazon: Expansion, tmp_path: Path) -> None:
    numbers = itertools.count()

    def run() -> None:
        store = Store.create(tmp_path / str(next(numbers)))
        store.write_plan(amazon.plan)
        assert len(survey(amazon, store).missing) == len(amazon.cells)

    results.add("overhead", "plan: write, and find what is missing", measure(benchmark, run, ROUNDS, len(amazon.cells)))


@cost
def test_publish(benchmark: BenchmarkFixture, results: Results, records: list[Record], tmp_path: Path) -> None:
    numbers = itertools.count()

    def run() -> None:
        store = Store.create(tmp_path / str(next(numbers)))
        assert all(store.publish(record) for record in records)

    results.add("overhead", "store: publish (waits for the disk)", measure(benchmark, run, ROUNDS, len(records)))


@cost
def test_tables(
    benchmark: BenchmarkFixture, results: Results, amazon: Expansion, records: list[Record], tmp_path: Path
) -> None:
    store = Store.create(tmp_path / "results")
    store.write_plan(amazon.plan)
    for record in records:
        store.publish(record)

    def run() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            main(["leaderboard", str(store.folder)])

    results.add("overhead", "tables: read, compare, write and print", measure(benchmark, run, ROUNDS, len(records)))
