"""Adds the options of `msda-bench run` that choose the device and the processes for training."""

from __future__ import annotations

import argparse
import math
import os
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msda_bench.errors import BenchError

if TYPE_CHECKING:
    from msda_bench.running.execute import Executor

_ADDRESS = re.compile(r"[a-z]+://\S+:[0-9]{1,5}")
MOST_TOGETHER = 64
"""The maximum number of cells in a job on a GPU; the engine stacks as many of them as fit into memory."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add = parser.add_argument
    add("--device", choices=["auto", "cpu", "cuda"], default="auto", help="where to train (cuda if there is a GPU)")
    add(
        "--executor",
        choices=["local", "inline", "dask"],
        default="local",
        help="what trains: processes on this machine (local), this process, for debugging (inline), or a dask cluster",
    )
    add("--scheduler", metavar="ADDRESS", help="with --executor dask: its scheduler, such as tcp://host:8786")
    add("--stack", type=whole_number, metavar="N", help="train at most N cells as one on a GPU (as many as fit)")
    add("--workers", type=whole_number, metavar="N", help="number of processes (one per GPU, or per CPU core)")
    add("--timeout", type=_seconds, metavar="SECONDS", help="stop a cell that takes longer")


def check_options(args: argparse.Namespace) -> None:
    """Refuses options that contradict each other.

    Raises:
        BenchError: two options contradict each other, or one needs a missing package.
    """
    if args.executor == "dask" and find_spec("distributed") is None:
        raise BenchError("--executor dask needs dask, which is not installed: pip install 'msda-bench[dask]'")
    if args.timeout is not None and args.executor == "inline":
        raise BenchError("--timeout needs processes that can be ended; remove --executor inline")
    if args.scheduler is None:
        return
    if args.executor != "dask":
        raise BenchError("--scheduler names a dask cluster; add --executor dask")
    if args.workers is not None:
        raise BenchError("--workers is for this machine; the dask cluster of --scheduler has its own")
    if args.device == "auto":
        raise BenchError("--scheduler needs --device cpu or cuda: this command cannot see the dask workers' devices")
    if not _ADDRESS.fullmatch(args.scheduler):
        raise BenchError(f"--scheduler {args.scheduler!r}: write protocol://host:port, such as tcp://node1:8786")


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


def make_executor(args: argparse.Namespace, device: str) -> Executor:
    """The executor that the options select."""
    from msda_bench.running.execute import InlineExecutor

    if args.executor == "inline":
        return InlineExecutor(device, stack=args.stack)
    workers = _workers(args, device)
    if args.executor == "dask":
        from msda_bench.running.executors.dask import DaskExecutor

        return DaskExecutor(device, workers, args.timeout, stack=args.stack, scheduler=args.scheduler)
    from msda_bench.running.local import LocalExecutor

    return LocalExecutor(device, workers, args.timeout, stack=args.stack)


def cells_of_a_job(args: argparse.Namespace, device: str, missing: int) -> int:
    """The maximum number of cells in a job: several on a GPU, but few enough that each local worker has a job."""
    if device == "cpu":
        return 1
    workers = 1 if args.executor == "inline" or args.scheduler is not None else _workers(args, device)
    return max(1, min(args.stack or MOST_TOGETHER, math.ceil(missing / workers)))


def _workers(args: argparse.Namespace, device: str) -> int:
    if args.workers is not None:
        return int(args.workers)
    if device == "cpu":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    import torch

    return max(1, torch.cuda.device_count())


def whole_number(text: str) -> int:
    """Parses a number of at least 1."""
    return int(_number(text, int, lambda number: number >= 1, "a whole number of at least 1"))


def _seconds(text: str) -> float:
    return float(_number(text, float, lambda number: 0 < number < math.inf, "a number of seconds above 0"))


def _number(text: str, kind: Callable[[str], Any], fits: Callable[[Any], bool], what: str) -> Any:
    try:
        if fits(number := kind(text)):
            return number
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}")
