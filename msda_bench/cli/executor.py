"""Adds the options of `msda-bench run` that choose the device and the processes for training."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msda_bench.cli.lines import warn, warn_of
from msda_bench.errors import BenchError

if TYPE_CHECKING:
    from msda_bench.running.execute import Executor

MOST_TOGETHER = 64
"""The maximum number of cells in a job on a GPU; the engine stacks as many of them as fit into memory."""

_LEAST, _MOST = 0.5, 0.99


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add = parser.add_argument
    add("--device", choices=["auto", "cpu", "cuda"], default="auto", help="where to train (cuda if there is a GPU)")
    add(
        "--executor",
        metavar="NAME",
        default="local",
        help="what trains: processes on this machine (local), this process, for debugging (inline), a dask cluster "
        "(dask), or another of `msda-bench plugins`",
    )
    add(
        "--scheduler", metavar="ADDRESS", help="of the executor's scheduler on another machine, such as tcp://host:8786"
    )
    add("--stack", type=whole_number, metavar="N", help="train at most N cells as one on a GPU (as many as fit)")
    add("--workers", type=whole_number, metavar="N", help="number of processes (one per GPU, or per CPU core)")
    add("--timeout", type=_seconds, metavar="SECONDS", help="stop a cell that takes longer")


def find_executor(args: argparse.Namespace) -> type[Executor]:
    """The class of the executor that the options name.

    Raises:
        BenchError: it is unknown or cannot be used, or two options contradict each other.
    """
    from msda_bench.running.execute import executors

    registry = executors()
    warn_of(registry.problems)
    cls: type[Executor] = registry.entry("executor", args.executor).cls  # type: ignore[assignment]
    cls.check(args.scheduler)
    if args.timeout is not None and not cls.has_processes:
        raise BenchError(f"--timeout needs processes that can be ended; remove --executor {args.executor}")
    if args.scheduler is None:
        return cls
    if not cls.has_scheduler:
        raise BenchError(f"--scheduler is not for --executor {args.executor}; add that of the scheduler, such as dask")
    if args.workers is not None:
        raise BenchError("--workers is for this machine; the cluster of --scheduler has its own")
    if args.device == "auto":
        raise BenchError("--scheduler needs --device cpu or cuda: this command cannot see its workers' devices")
    return cls


def find_device(args: argparse.Namespace) -> str:
    """The device to train on: "cpu" or "cuda".

    Raises:
        BenchError: a GPU is requested, but PyTorch finds none.
    """
    if args.device == "cpu" or args.scheduler is not None:
        return str(args.device)
    import torch

    there = torch.cuda.is_available()
    if args.device == "cuda" and not there:
        raise BenchError("--device cuda: PyTorch finds no GPU here; use --device cpu")
    return "cuda" if there else "cpu"


def make_executor(args: argparse.Namespace, cls: type[Executor], device: str) -> Executor:
    """The executor with the options."""
    from msda_bench.running.execute import Setup

    workers = _workers(args, device) if cls.has_processes and args.scheduler is None else 1
    return cls(setup=Setup(device, args.stack), workers=workers, timeout=args.timeout, scheduler=args.scheduler)


def cells_of_a_job(executor: Executor, missing: int) -> int:
    """The maximum number of cells in a job: several on a GPU, but few enough that each worker here has a job."""
    if executor.setup.device == "cpu":
        return 1
    return max(1, min(executor.setup.stack or MOST_TOGETHER, math.ceil(missing / executor.workers)))


def _workers(args: argparse.Namespace, device: str) -> int:
    if device == "cpu":
        there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return int(args.workers or there)
    import torch

    there = max(1, torch.cuda.device_count())
    if args.workers and args.workers > there:
        gpus = "one GPU" if there == 1 else f"{there} GPUs"
        warn(f"--workers {args.workers}: workers that share {gpus} take longer than one each; leave --workers out")
    return int(args.workers or there)


def whole_number(text: str) -> int:
    """Parses a number of at least 1."""
    return int(number(text, int, lambda count: count >= 1, "a whole number of at least 1"))


def _seconds(text: str) -> float:
    return float(number(text, float, lambda seconds: 0 < seconds < math.inf, "a number of seconds above 0"))


def probability(text: str) -> float:
    """Parses a probability that is worth asking for."""
    return float(number(text, float, lambda share: _LEAST <= share <= _MOST, f"a probability from {_LEAST} to {_MOST}"))


def number(text: str, kind: Callable[[str], Any], fits: Callable[[Any], bool], what: str) -> Any:
    """Parses a number that fits; `what` it must be tells of any other."""
    try:
        if fits(value := kind(text)):
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}")
