"""Process CPU time, the main figure since a machine may be shared, and wall time beside it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

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
    """Medians over the rounds, and the range of the CPU time."""

    cost: Cost
    least: float
    most: float
    rounds: int

    @classmethod
    def of(cls, costs: Sequence[Cost]) -> Measured:
        """The summary of one cost a round."""
        cpu, wall = zip(*costs, strict=True)
        return cls(Cost(statistics.median(cpu), statistics.median(wall)), min(cpu), max(cpu), len(costs))


def cost_of(action: Callable[[], object]) -> Cost:
    """What one call costs."""
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def measure(benchmark: BenchmarkFixture, action: Callable[[], object], rounds: int, parts: int = 1) -> Measured:
    """The cost of one of the `parts` of an action; one call goes before to warm up and does not count."""
    costs: list[Cost] = []
    action()
    benchmark.pedantic(lambda: costs.append(cost_of(action) / parts), rounds=rounds)  # type: ignore[no-untyped-call]
    return _kept(benchmark, costs)


def measure_step(
    benchmark: BenchmarkFixture, train: Callable[[int], object], steps: tuple[int, int], rounds: int
) -> Measured:
    """The cost of a training step: in each round a long run less a short one, by the steps between.

    So building the network, preparing the data and judging the result do not count.

    Args:
        benchmark: of pytest-benchmark, which times the long runs whole.
        train: trains for a number of steps.
        steps: of the short and of the long run.
        rounds: number of measurements, after one run that does not count.
    """
    short, long = steps
    before: list[Cost] = []
    costs: list[Cost] = []

    def run() -> None:
        costs.append((cost_of(lambda: train(long)) - before[-1]) / (long - short))

    train(long)
    benchmark.pedantic(  # type: ignore[no-untyped-call]
        run, setup=lambda: before.append(cost_of(lambda: train(short))), rounds=rounds
    )
    return _kept(benchmark, costs)


def _kept(benchmark: BenchmarkFixture, costs: Sequence[Cost]) -> Measured:
    found = Measured.of(costs)
    benchmark.extra_info.update(cpu_s=found.cost.cpu, wall_s=found.cost.wall, least_cpu_s=found.least)
    return found
