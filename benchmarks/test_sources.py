"""What a training step costs by the number of sources."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.clocks import clocked, measure_step
from benchmarks.results import Results
from benchmarks.scaling import fit
from benchmarks.workload import cells_of, engine_train, expansion
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry


@pytest.mark.benchmark(group="step by number of sources", timer=time.process_time)
@pytest.mark.parametrize("k", [2, 4, 8, 16, 32, 64, 128, 256])
@pytest.mark.parametrize("method", ["DARN", "MDMN"])
def test_step(
    benchmark: BenchmarkFixture, results: Results, registry: Registry, trainer: Trainer, method: str, k: int
) -> None:
    (cell,) = cells_of(expansion("many", registry), method)
    cost = clocked(engine_train(trainer, [replace(cell, sources=cell.sources[:k])]))
    steps = results.steps(2, 2 + max(12, min(120, 2400 // k)), gpu=1000)
    results.add("sources", f"{method}: k = {k}", measure_step(benchmark, cost, steps, rounds=5))


def test_fit_finds_what_it_is_of() -> None:
    counts = [2, 8, 32, 128]
    found = fit(counts, [3e-3 + 2e-4 * k + 1e-6 * k * k for k in counts])
    assert found == pytest.approx((3e-3, 2e-4, 1e-6), rel=1e-6)
    from_here = found.square_is(0.1)
    assert found.square * from_here**2 == pytest.approx(0.1 * found.at(from_here))
