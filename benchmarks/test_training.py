"""What a training step costs: the engine beside the reference, in one process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.clocks import measure_step
from benchmarks.reference import Domain, Networks, Settings, amazon_networks, digits_networks, train
from benchmarks.results import Results
from benchmarks.synthetic import AmazonLike, DigitsLike
from benchmarks.tables import REFERENCE
from benchmarks.workload import cell_of, dense_domains, engine_run, expansion
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry

METHODS = ("DARN", "MDAN", "MDMN", "DANN", "SRC", "TAR")


def _reference_run(
    make: Callable[[], Networks], domains: Sequence[Domain], settings: Settings
) -> Callable[[int], None]:
    *sources, target = domains

    def run(steps: int) -> None:
        torch.manual_seed(0)
        log = train(make(), sources, target, settings, steps, seed=0)
        assert all(math.isfinite(value) for line in log for value in line)

    return run


@pytest.mark.benchmark(group="Amazon-shaped step", timer=time.process_time)
def test_amazon_reference(benchmark: BenchmarkFixture, results: Results) -> None:
    run = _reference_run(amazon_networks, dense_domains(AmazonLike(train=2000)), Settings(batch=20, gamma=0.9))
    results.add("amazon", REFERENCE, measure_step(benchmark, run, steps=(1, 21), rounds=5))


@pytest.mark.benchmark(group="Amazon-shaped step", timer=time.process_time)
@pytest.mark.parametrize("method", METHODS)
def test_amazon_engine(
    benchmark: BenchmarkFixture, results: Results, registry: Registry, trainer: Trainer, method: str
) -> None:
    run = engine_run(trainer, cell_of(expansion("amazon", registry), method))
    results.add("amazon", f"engine, {method}", measure_step(benchmark, run, steps=(1, 101), rounds=7))


@pytest.mark.slow
@pytest.mark.benchmark(group="digits-shaped step", timer=time.process_time)
def test_digits_reference(benchmark: BenchmarkFixture, results: Results) -> None:
    run = _reference_run(digits_networks, dense_domains(DigitsLike(train=500)), Settings(batch=128, gamma=0.1))
    results.add("digits", REFERENCE, measure_step(benchmark, run, steps=(1, 3), rounds=3))


@pytest.mark.slow
@pytest.mark.benchmark(group="digits-shaped step", timer=time.process_time)
def test_digits_engine(benchmark: BenchmarkFixture, results: Results, registry: Registry, trainer: Trainer) -> None:
    run = engine_run(trainer, cell_of(expansion("digits", registry), "DARN"))
    results.add("digits", "engine, DARN", measure_step(benchmark, run, steps=(1, 3), rounds=3))
