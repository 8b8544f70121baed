"""Processes that train side by side, each on work of its own, asked together by their parent."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import torch
from loky import ProcessPoolExecutor

from benchmarks.costs import Cost, cost_of, peak_memory
from benchmarks.workload import Train, Who, Work, make_train
from msda_bench.processes import KEPT_MEMORY


class Task(NamedTuple):
    """What a process does.

    Attributes:
        who: the engine, with one thread and freed memory kept as a worker of a run, or the plain loop, with one thread.
        work: "amazon" or "digits".
        device: "cpu" or "cuda".
    """

    who: Who
    work: Work
    device: str = "cpu"


class Workers:
    """One process a task, warmed up by a run of one step; ended with the `with` block."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._pools = [
            (ProcessPoolExecutor(1, env=dict(KEPT_MEMORY) if task.who == "engine" else {}), task) for task in tasks
        ]

    def __enter__(self) -> Self:
        self._ask(_warmed)
        return self

    def __exit__(self, *raised: object) -> None:
        for pool, _ in self._pools:
            pool.shutdown()

    def cost(self, steps: int) -> Cost:
        """Of training all at once: CPU time of all processes, wall time until the last is done."""
        answers: list[Cost] = []
        whole = cost_of(lambda: answers.extend(self._ask(functools.partial(_cost, steps=steps))))
        return Cost(sum(cost.cpu for cost in answers), whole.wall)

    def peak(self, steps: int) -> float:
        """Bytes of the largest process; see `peak_memory`."""
        return max(self._ask(functools.partial(_peak, steps=steps)))

    def _ask(self, order: Callable[[Task], Any]) -> list[Any]:
        return [answer.result() for answer in [pool.submit(order, task) for pool, task in self._pools]]


@functools.cache
def _trained(task: Task) -> Train:
    torch.set_num_threads(1)
    train = make_train(*task)
    train(1)
    return train


def _warmed(task: Task) -> None:
    _trained(task)


def _cost(task: Task, steps: int) -> Cost:
    train = _trained(task)
    return cost_of(lambda: train(steps))


def _peak(task: Task, steps: int) -> float:
    train = _trained(task)
    return peak_memory(lambda: train(steps), task.device)
