"""What a training step costs: the engine beside the reference, in one process."""

from __future__ import annotations

import time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.clocks import clocked, measure_step
from benchmarks.results import REFERENCE, Results
from benchmarks.workload import cells_of, engine_train, expansion, reference_train
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry

METHODS = ("DARN", "MDAN", "MDMN", "DANN", "SRC", "TAR")
amazon = pytest.mark.benchmark(group="Amazon-shaped step", timer=time.process_time)
digits = pytest.mark.benchmark(group="digits-shaped step", timer=time.process_time)


@amazon
def test_amazon_reference(benchmark: BenchmarkFixture, results: Results) -> None:
    cost = clocked(reference_train("amazon", results.device))
    results.add("amazon", REFERENCE, measure_step(benchmark, cost, results.steps(1, 21, gpu=20), rounds=5))


@amazon
@pytest.mark.parametrize("method", METHODS)
def test_amazon_engine(
    benchmark: BenchmarkFixture, results: Results, registry: Registry, trainer: Trainer, method: str
) -> None:
    cost = clocked(engine_train(trainer, cells_of(expansion("amazon", registry), method)[:1]))
    results.add("amazon", f"engine, {method}", measure_step(benchmark, cost, results.steps(1, 101, gpu=200), rounds=7))


@pytest.mark.slow
@digits
def test_digits_reference(benchmark: BenchmarkFixture, results: Results) -> None:
    cost = clocked(reference_train("digits", results.device))
    results.add("digits", REFERENCE, measure_step(benchmark, cost, results.steps(1, 3, gpu=50), rounds=3))


@pytest.mark.slow
@digits
def test_digits_engine(benchmark: BenchmarkFixture, results: Results, registry: Registry, trainer: Trainer) -> None:
    cost = clocked(engine_train(trainer, cells_of(expansion("digits", registry), "DARN")[:1]))
    results.add("digits", "engine, DARN", measure_step(benchmark, cost, results.steps(1, 3, gpu=50), rounds=3))
