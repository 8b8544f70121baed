"""Costs: process CPU time, the main figure on a CPU since a machine may be shared, and wall time."""

from __future__ import annotations

import contextlib
import ctypes
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from pytest_benchmark.fixture import BenchmarkFixture

from msda_bench.engine.graph import WARM

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""glibc's constants for mallopt."""
_KEEP = 1 << 30


class Cost(NamedTuple):
    """Seconds of process CPU time and of wall time."""

    cpu: float
    wall: float


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


def clocked(train: Callable[[int], object]) -> Callable[[int], Cost]:
    """The cost of training in this process for a number of steps."""
    return lambda steps: cost_of(lambda: train(steps))


def measure_steps(
    benchmark: BenchmarkFixture,
    ways: Mapping[str, Callable[[int], Cost]],
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
        ways: by name, the cost of training for a number of steps.
        steps: of the short and of the long run; on a GPU both go on after their graphs are recorded.
        rounds: number of measurements, after one long run of each that does not count.
        runs: that are trained at once, in a stack.
        device: where they train.
    """
    short, long = steps if device == "cpu" else (steps[0] + WARM + 1, steps[1] + WARM + 1)
    found: dict[str, list[Cost]] = {name: [] for name in ways}

    def run() -> None:
        for name, cost in ways.items():
            pairs = zip(cost(long), cost(short), strict=True)
            found[name].append(Cost(*((more - less) / ((long - short) * runs) for more, less in pairs)))

    for cost in ways.values():
        cost(long)
    benchmark.pedantic(run, rounds=rounds)  # type: ignore[no-untyped-call]
    (first, *_), clock = found, "cpu" if device == "cpu" else "wall"
    for name, costs in found.items():
        for each in Cost._fields:
            benchmark.extra_info[f"{name}, {each} ms a step"] = 1e3 * statistics.median(getattr(c, each) for c in costs)
        ratios = [getattr(one, clock) / getattr(own, clock) for one, own in zip(costs, found[first], strict=True)]
        if name != first:
            benchmark.extra_info[f"{name} / {first}, {clock}"] = statistics.median(ratios)


def keep_freed_memory() -> None:
    """Does for this process what its environment does for a worker, see `msda_bench.processes.KEPT_MEMORY`."""
    with contextlib.suppress(OSError, AttributeError):  # without glibc nothing is done
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, _KEEP)
        libc.mallopt(_TRIM_THRESHOLD, _KEEP)
