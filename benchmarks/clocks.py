"""Process CPU time, the main figure on a CPU since a machine may be shared, and wall time beside it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from pytest_benchmark.fixture import BenchmarkFixture


class Cost(NamedTuple):
    """Seconds of process CPU time and of wall time."""

    cpu: float
    wall: float

    def __sub__(self, other: Cost) -> Cost:
        """What this took more than the other."""
        return Cost(self.cpu - other.cpu, self.wall - other.wall)

    def __truediv__(self, count: float) -> Cost:
        """Of one of `count` equal parts."""
        return Cost(self.cpu / count, self.wall / count)


class Measured(NamedTuple):
    """Medians over the rounds, and their range, each clock by itself."""

    cost: Cost
    least: Cost
    most: Cost
    rounds: int

    @classmethod
    def of(cls, costs: Sequence[Cost]) -> Measured:
        """The summary of one cost a round."""
        cpu, wall = zip(*costs, strict=True)
        median = Cost(statistics.median(cpu), statistics.median(wall))
        return cls(median, Cost(min(cpu), min(wall)), Cost(max(cpu), max(wall)), len(costs))


def cost_of(action: Callable[[], object]) -> Cost:
    """What one call costs; what it left a GPU to do counts."""
    _wait_for_gpu()
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    _wait_for_gpu()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def _wait_for_gpu() -> None:
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()


def measure(benchmark: BenchmarkFixture, action: Callable[[], object], rounds: int, parts: int = 1) -> Measured:
    """The cost of one of the `parts` of an action; one call goes before to warm up and does not count."""
    costs: list[Cost] = []
    action()
    benchmark.pedantic(lambda: costs.append(cost_of(action) / parts), rounds=rounds)  # type: ignore[no-untyped-call]
    return _kept(benchmark, costs)


def measure_step(
    benchmark: BenchmarkFixture, cost: Callable[[int], Cost], steps: tuple[int, int], rounds: int, runs: int = 1
) -> Measured:
    """The cost of a training step of one run: in each round a long run less a short one, by the steps between.

    So building the network, preparing the data and judging the result do not count.

    Args:
        benchmark: of pytest-benchmark, which times the long runs whole.
        cost: of training for a number of steps.
        steps: of the short and of the long run.
        rounds: number of measurements, after one run that does not count.
        runs: that are trained at once, in a stack or in processes side by side.
    """
    short, long = steps
    before: list[Cost] = []
    costs: list[Cost] = []

    def run() -> None:
        costs.append((cost(long) - before[-1]) / ((long - short) * runs))

    cost(long)
    benchmark.pedantic(run, setup=lambda: before.append(cost(short)), rounds=rounds)  # type: ignore[no-untyped-call]
    return _kept(benchmark, costs)


def clocked(train: Callable[[int], object]) -> Callable[[int], Cost]:
    """The cost of training in this process for a number of steps."""
    return lambda steps: cost_of(lambda: train(steps))


def _kept(benchmark: BenchmarkFixture, costs: Sequence[Cost]) -> Measured:
    found = Measured.of(costs)
    benchmark.extra_info.update(cpu_s=found.cost.cpu, wall_s=found.cost.wall, least_cpu_s=found.least.cpu)
    return found
