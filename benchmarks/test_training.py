"""What a training step costs beside a plain loop in the same run, by sources and in stacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.costs import measure_steps
from benchmarks.workload import brief_train, cells_of, engine_train, expansion, reference_train
from msda_bench.data import LocalFiles
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry
from msda_bench.suite.run_spec import RunSpec

METHODS = ("DARN", "MDAN", "MDMN", "DANN", "SRC", "TAR")
GPU_STEPS = {"amazon": 200, "digits": 24, "fonts": 504}
"""Of a network that is fast on a GPU more, or making and judging the runs hides what they cost."""


@pytest.mark.benchmark(group="a step of each method beside a plain loop's DARN")
def test_amazon(benchmark: BenchmarkFixture, registry: Registry, trainer: Trainer, device: str) -> None:
    cells = {method: cells_of(expansion("amazon", registry), method)[:1] for method in METHODS}
    ways = {method: engine_train(trainer, mine) for method, mine in cells.items()}
    ways["plain loop"] = reference_train("amazon", device)
    measure_steps(benchmark, ways, (1, 21 if device == "cpu" else 201), 5, device=device)


@pytest.mark.benchmark(group="a step of a small network beside a plain loop's")
@pytest.mark.parametrize("method", ["SRC", "DARN"])
@pytest.mark.parametrize("work", ["table", "fonts"])
def test_small(
    benchmark: BenchmarkFixture,
    registry: Registry,
    trainer: Trainer,
    device: str,
    work: Literal["table", "fonts"],
    method: str,
) -> None:
    if device != "cpu":
        pytest.skip("the plain loop is a CPU's")
    ways = {"plain loop": brief_train(work, method)}
    ways[method] = engine_train(trainer, cells_of(expansion(work, registry), method)[:1])
    measure_steps(benchmark, ways, (10, 410), 5)


@pytest.mark.slow
@pytest.mark.benchmark(group="a step of each method beside a plain loop's DARN")
def test_digits(benchmark: BenchmarkFixture, registry: Registry, trainer: Trainer, device: str) -> None:
    ways = {"DARN": engine_train(trainer, cells_of(expansion("digits", registry), "DARN")[:1])}
    ways["plain loop"] = reference_train("digits", device)
    measure_steps(benchmark, ways, (1, 3 if device == "cpu" else 51), 3, device=device)


@pytest.mark.benchmark(group="a step by the number of sources")
@pytest.mark.parametrize("k", [2, 16, 64, 256])
@pytest.mark.parametrize("method", ["DARN", "MDMN"])
def test_sources(
    benchmark: BenchmarkFixture, registry: Registry, trainer: Trainer, device: str, method: str, k: int
) -> None:
    (cell,) = cells_of(expansion("many", registry), method)
    train = engine_train(trainer, [replace(cell, sources=cell.sources[:k])])
    long = 2 + max(12, min(120, 2400 // k)) if device == "cpu" else 1002
    measure_steps(benchmark, {method: train}, (2, long), 5, device=device)


@pytest.mark.slow
@pytest.mark.benchmark(group="a run's step in a stack")
@pytest.mark.parametrize("runs", [1, 2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("work", ["amazon", "digits", "fonts"])
def test_stack(benchmark: BenchmarkFixture, registry: Registry, device: str, work: str, runs: int) -> None:
    on_cpu = device == "cpu"
    if on_cpu and (work != "amazon" or runs > 8):
        pytest.skip("a stack loses on a CPU, and this one would take minutes to do so")
    cells = [_with_little_data(cell) for cell in cells_of(expansion(work, registry), "DARN")[:runs]]
    if len(cells) < runs:
        pytest.skip(f"the suite has {len(cells)} runs")
    trainer = Trainer(registry, LocalFiles(), device, stack=runs)
    ways = {f"R = {runs}, {some} at once": engine_train(trainer, cells, some) for some in ((1,) if on_cpu else (1, 8))}
    measure_steps(benchmark, ways, (1, 2 + 48 // runs if on_cpu else 1 + GPU_STEPS[work]), 3, runs, device)


def _with_little_data(cell: RunSpec) -> RunSpec:
    """Each run of a stack has a split of its own; making a large one takes longer than the steps to be measured."""
    params = cell.dataset.params
    little = {name: count for name, count in {"examples": 300, "train": 200}.items() if name in params}
    return replace(cell, dataset=replace(cell.dataset, params={**params, **little}))
