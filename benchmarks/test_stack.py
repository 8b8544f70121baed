"""What a training step costs by the number R of runs that train as one tensor program; made for a GPU."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.clocks import clocked, measure_step
from benchmarks.results import Results
from benchmarks.workload import NoFiles, Work, cells_of, engine_train, expansion
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell

LARGEST_ON_CPU = 8


@pytest.mark.slow
@pytest.mark.benchmark(group="step by stack size", timer=time.process_time)
@pytest.mark.parametrize("runs", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("work", ["amazon", "digits"])
def test_step(benchmark: BenchmarkFixture, results: Results, registry: Registry, work: Work, runs: int) -> None:
    on_cpu = results.device == "cpu"
    if on_cpu and (work == "digits" or runs > LARGEST_ON_CPU):
        pytest.skip("a stack loses on a CPU, and this one would take minutes to do so")
    cells = [_with_little_data(cell) for cell in cells_of(expansion(work, registry), "DARN")[:runs]]
    cost = clocked(engine_train(Trainer(registry, NoFiles(), results.device, stack=runs), cells))
    steps = results.steps(1, 1 + 48 // runs if on_cpu else 101)
    results.add(f"stack, {work}", f"R = {runs}", measure_step(benchmark, cost, steps, rounds=3, runs=runs))


def _with_little_data(cell: Cell) -> Cell:
    """Each run of a stack has a split of its own; making a large one takes longer than the steps to be measured."""
    return replace(cell, dataset=replace(cell.dataset, params={**cell.dataset.params, "examples": 300, "train": 200}))
