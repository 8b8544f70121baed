"""What a training step costs beside other libraries' in the same run: same network, data, batch sizes and steps.

`MSDA_BENCH_DARN` names a clone of https://github.com/junfengwen/DARN, whose code is then measured, too.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.costs import measure_steps
from benchmarks.peers import SETTINGS, Work, authors_train, skada_train
from benchmarks.workload import cells_of, engine_train, expansion
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Registry

SUITES: dict[Work, str] = {"table": "peers", "amazon": "peers-amazon"}
EPOCHS: dict[Work, int] = {"table": 10, "amazon": 2}
"""Of the long run, of 18 and of 30 steps."""
ROUNDS: dict[Work, int] = {"table": 5, "amazon": 3}


@pytest.mark.benchmark(group="a step beside skada's")
@pytest.mark.parametrize("method", ["DANN", "CORAL"])
@pytest.mark.parametrize("work", ["table", "amazon"])
def test_skada(benchmark: BenchmarkFixture, registry: Registry, trainer: Trainer, work: Work, method: str) -> None:
    pytest.importorskip("skorch")
    pytest.importorskip("skada.deep")
    ways = {method: engine_train(trainer, cells_of(expansion(SUITES[work], registry), method))}
    ways[f"skada's {method}"] = skada_train(work, method)  # type: ignore[arg-type]
    steps = SETTINGS[work].steps
    measure_steps(benchmark, ways, (steps, EPOCHS[work] * steps), ROUNDS[work])


@pytest.mark.benchmark(group="a step beside the authors'")
@pytest.mark.parametrize("method", ["DANN", "DARN"])
@pytest.mark.parametrize("work", ["table", "amazon"])
def test_authors(benchmark: BenchmarkFixture, registry: Registry, trainer: Trainer, work: Work, method: str) -> None:
    clone = os.environ.get("MSDA_BENCH_DARN")
    if clone is None:
        pytest.skip("MSDA_BENCH_DARN names no clone of the authors' code")
    ways = {method: engine_train(trainer, cells_of(expansion(SUITES[work], registry), method))}
    ways[f"the authors' {method}"] = authors_train(Path(clone), work, method)  # type: ignore[arg-type]
    steps = SETTINGS[work].steps
    measure_steps(benchmark, ways, (steps, EPOCHS[work] * steps), ROUNDS[work])
