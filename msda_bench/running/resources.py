"""Chooses the executor, the device and the number of processes for a suite."""

from __future__ import annotations

import math
import os
from collections.abc import Callable

from msda_bench.errors import BenchError
from msda_bench.running.execute import Executor, Setup, executors
from msda_bench.running.options import RunOptions

_MOST_TOGETHER = 64
"""The maximum number of runs in a job on a GPU; the engine stacks as many of them as fit into memory."""


def find_executor(options: RunOptions, warn: Callable[[str], None]) -> type[Executor]:
    """The class of the executor that the options name.

    Raises:
        BenchError: there is none of this name, or another option does not go with it.
    """
    registry = executors()
    for line in registry.problems:
        warn(line)
    cls: type[Executor] = registry.entry("executor", options.executor).cls  # type: ignore[assignment]
    cls.check(options.scheduler)
    if options.timeout is not None and not cls.has_processes:
        raise BenchError(f"--timeout needs processes that can be ended; remove --executor {options.executor}")
    if options.scheduler is None:
        return cls
    if not cls.has_scheduler:
        what = f"--scheduler is not for --executor {options.executor}"
        raise BenchError(f"{what}; add that of the scheduler, such as dask")
    if options.workers is not None:
        raise BenchError("--workers is for this machine; the cluster of --scheduler has its own")
    if options.device == "auto":
        raise BenchError("--scheduler needs --device cpu or cuda: this command cannot see its workers' devices")
    return cls


def find_device(device: str) -> str:
    """The device to train on: "cpu" or "cuda".

    Raises:
        BenchError: a GPU is requested, but PyTorch finds none.
    """
    if device == "cpu":
        return device
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if device == "cuda":
        raise BenchError("--device cuda: PyTorch finds no GPU here; use --device cpu")
    return "cpu"


def make_executor(options: RunOptions, cls: type[Executor], device: str, warn: Callable[[str], None]) -> Executor:
    """The executor with the options; by default with a process for each CPU core or GPU."""
    workers = 1
    if cls.has_processes and options.scheduler is None:
        available = _processors(device)
        workers = options.workers or available
        if device != "cpu" and workers > available:
            gpus = "one GPU" if available == 1 else f"{available} GPUs"
            warn(f"--workers {workers}: workers that share {gpus} take longer than one each; leave --workers out")
    setup = Setup(device, options.stack)
    return cls(setup=setup, workers=workers, timeout=options.timeout, scheduler=options.scheduler)


def _processors(device: str) -> int:
    """The number of CPU cores that this process may use, or of GPUs."""
    if device != "cpu":
        import torch

        return max(1, torch.cuda.device_count())
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def runs_of_a_job(executor: Executor, missing: int) -> int:
    """The maximum number of runs in a job: several on a GPU, but few enough that each worker here has a job."""
    if executor.setup.device == "cpu":
        return 1
    most = executor.setup.stack or _MOST_TOGETHER
    return max(1, min(most, math.ceil(missing / executor.workers)))
