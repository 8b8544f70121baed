"""Processes that train side by side, each on work of its own, started together by their parent."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeAlias

import torch
from loky.backend.process import LokyProcess

from benchmarks.costs import Cost, cost_of, peak_memory
from benchmarks.workload import Train, Who, Work, make_train
from msda_bench.processes import KEPT_MEMORY

Order: TypeAlias = Callable[[Train], Any]


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
        pairs = [Pipe() for _ in tasks]
        self._pipes = [ours for ours, _ in pairs]
        self._processes = [
            LokyProcess(target=_live, args=(theirs, task), daemon=True, env=KEPT_MEMORY if task.who == "engine" else {})
            for (_, theirs), task in zip(pairs, tasks, strict=True)
        ]
        for process, (_, theirs) in zip(self._processes, pairs, strict=True):
            process.start()
            theirs.close()

    def __enter__(self) -> Self:
        self._answers()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.close()
            process.join()

    def cost(self, steps: int) -> Cost:
        """Of training all at once: CPU time of all processes, wall time until the last is done."""
        answers: list[Cost] = []
        whole = cost_of(lambda: answers.extend(self._ask(functools.partial(_cost, steps=steps))))
        return Cost(sum(cost.cpu for cost in answers), whole.wall)

    def peak(self, steps: int, device: str) -> float:
        """Bytes of the largest process; see `peak_memory`."""
        answers: list[float] = self._ask(functools.partial(_peak, steps=steps, device=device))
        return max(answers)

    def _ask(self, order: Order) -> list[Any]:
        for pipe in self._pipes:
            pipe.send(order)
        return self._answers()

    def _answers(self) -> list[Any]:
        return [pipe.recv() for pipe in self._pipes]


def _live(pipe: Connection[Any, Order], task: Task) -> None:
    torch.set_num_threads(1)
    train = make_train(task.who, task.work, task.device)
    train(1)
    pipe.send(os.getpid())
    while True:
        try:
            order = pipe.recv()
        except EOFError:  # the parent wants no more
            return
        pipe.send(order(train))


def _cost(train: Train, steps: int) -> Cost:
    return cost_of(lambda: train(steps))


def _peak(train: Train, steps: int, device: str) -> float:
    return peak_memory(lambda: train(steps), device)
