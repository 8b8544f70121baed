"""Costs: process CPU time, the main figure on a CPU since a machine may be shared, and wall time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from pytest_benchmark.fixture import BenchmarkFixture

from msda_bench.engine.graph import WARM


class Cost(NamedTuple):
    """Seconds of process CPU time and of wall time."""

    cpu: float
    wall: float


def _cost(train: Callable[[int], object], steps: int) -> Cost:
    """What it costs to train for a number of steps; what that left a GPU to do counts."""
    _wait_for_gpu()
    wall, cpu = time.perf_counter(), time.process_time()
    train(steps)
    _wait_for_gpu()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def _wait_for_gpu() -> None:
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()


def measure_steps(
    benchmark: BenchmarkFixture,
    ways: Mapping[str, Callable[[int], object]],
    steps: tuple[int, int],
    rounds: int,
    runs: int = 1,
    device: str = "cpu",
) -> None:
    """The cost of a training step of one run, in each way, and how many times the first way's cost the others take.

    In each round, in turn, each way makes a long run less a short one, by the steps between: building the network,
    preparing the data and judging the result do not count. Medians over the rounds, and of the ratios within them.

    Args:
        benchmark: of pytest-benchmark, which times the rounds whole.
        ways: by name, what trains in this process for a number of steps.
        steps: of the short and of the long run; on a GPU both go on after graphs of up to eight steps are recorded.
        rounds: number of measurements, after one long run of each that does not count.
        runs: that are trained at once, in a stack.
        device: where they train.
    """
    short, long = steps if device == "cpu" else (8 * (WARM + 1) + count for count in steps)
    found: dict[str, list[Cost]] = {name: [] for name in ways}

    def run() -> None:
        for name, train in ways.items():
            pairs = zip(_cost(train, long), _cost(train, short), strict=True)
            found[name].append(Cost(*((more - less) / ((long - short) * runs) for more, less in pairs)))

    for train in ways.values():
        train(long)
    benchmark.pedantic(run, rounds=rounds)  # type: ignore[no-untyped-call]
    (first, *_), clock = found, "cpu" if device == "cpu" else "wall"
    for name, costs in found.items():
        for each in Cost._fields:
            benchmark.extra_info[f"{name}, {each} ms a step"] = 1e3 * statistics.median(getattr(c, each) for c in costs)
        ratios = [getattr(one, clock) / getattr(own, clock) for one, own in zip(costs, found[first], strict=True)]
        if name != first:
            benchmark.extra_info[f"{name} / {first}, {clock}"] = statistics.median(ratios)
