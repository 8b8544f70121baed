"""What a training step costs by the number R of runs that train as one tensor program; made for a GPU."""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.clocks import clocked, measure_step
from benchmarks.results import Results
from benchmarks.workload import NoFiles, cells_of, engine_train, expansion
from msda_bench.engine import graph
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry
from msda_bench.suite.cell import Cell

LARGEST_ON_CPU = 8
GPU_STEPS = {"amazon": 200, "digits": 20, "fonts": 500}
"""Of a network that is fast on a GPU more, or making and judging the runs hides what they cost."""


@pytest.mark.slow
@pytest.mark.benchmark(group="step by stack size", timer=time.process_time)
@pytest.mark.parametrize("asked", ["once", "by the host"])
@pytest.mark.parametrize("runs", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("work", ["amazon", "digits", "fonts"])
def test_step(
    benchmark: BenchmarkFixture,
    results: Results,
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
    work: str,
    runs: int,
    asked: str,
) -> None:
    """On a GPU a step is asked for once, as a graph; "by the host" it is asked for operation by operation."""
    on_cpu = results.device == "cpu"
    if on_cpu and (asked == "once" or work != "amazon" or runs > LARGEST_ON_CPU):
        pytest.skip("a CPU has no graphs; a stack loses there, and this one would take minutes to do so")
    cells = [_with_little_data(cell) for cell in cells_of(expansion(work, registry), "DARN")[:runs]]
    if len(cells) < runs:
        pytest.skip(f"the suite has {len(cells)} runs")
    if asked == "by the host":
        monkeypatch.setattr(graph, "WARM", sys.maxsize)
    cost = clocked(engine_train(Trainer(registry, NoFiles(), results.device, stack=runs), cells))
    steps = results.steps(1, 1 + 48 // runs, gpu=GPU_STEPS[work])
    row = f"R = {runs}" if on_cpu or asked == "once" else f"R = {runs}, by the host"
    results.add(f"stack, {work}", row, measure_step(benchmark, cost, steps, rounds=3, runs=runs))


def _with_little_data(cell: Cell) -> Cell:
    """Each run of a stack has a split of its own; making a large one takes longer than the steps to be measured."""
    params = cell.dataset.params
    little = {name: count for name, count in {"examples": 300, "train": 200}.items() if name in params}
    return replace(cell, dataset=replace(cell.dataset, params={**params, **little}))
