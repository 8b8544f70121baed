"""What makes a run's numbers repeat to the last bit: process settings, the precision of products, random streams."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from msda_bench.api import BenchError
from msda_bench.suite.run_spec import RunSpec


@contextlib.contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """One thread on the CPU, denormals flushed to zero; the settings are restored afterwards.

    One thread, because sums that threads share depend on their number; and two processes of one thread each are faster
    than one process of two. Denormals, because they fill Adadelta's decaying accumulators, and slow a CPU down.
    """
    threads = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    ours = torch.get_num_threads()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        # A number that a component changed is left for `restored`, which reports it.
        if torch.get_num_threads() == ours:
            torch.set_num_threads(threads)


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """For a forward pass: bfloat16 wherever torch considers it safe, if the precision is bf16."""
    if precision != "bf16":
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


@contextlib.contextmanager
def products(precision: str, device: torch.device) -> Iterator[None]:
    """For a whole run: lets a GPU multiply float32 matrices in TensorFloat-32, if the precision is tf32.

    In tf32 and bf16 cuDNN times its deterministic convolutions, once a process, and keeps the fastest; in float32 its
    heuristics choose, so that numbers repeat from process to process.

    Raises:
        BenchError: the precision is tf32 and the device is not a GPU.
    """
    if precision == "tf32" and device.type != "cuda":
        raise BenchError("precision tf32 is a GPU's; this run trains on the CPU: use float32 or bf16 there")
    former = torch.get_float32_matmul_precision()
    ours = "high" if precision == "tf32" else "highest"
    torch.set_float32_matmul_precision(ours)
    try:
        with torch.backends.cudnn.flags(
            enabled=True, benchmark=precision != "float32", deterministic=True, allow_tf32=precision == "tf32"
        ):
            yield
    finally:
        # A setting that a component changed is left for `restored`, which reports it.
        if torch.get_float32_matmul_precision() == ours:
            torch.set_float32_matmul_precision(former)


CPU = torch.device("cpu")


def stream_key(cell: RunSpec, *purpose: str | int) -> Tensor:
    """The (2,) int32 key of a stream.

    It depends on the dataset's name, the target, the seed and the purpose. It does not depend on the method, so that
    methods are compared on common random numbers; nor on the stack, the order, or resuming.
    """
    return torch.tensor(_halves(cell, *purpose), dtype=torch.int32)


def _halves(cell: RunSpec, *purpose: str | int) -> list[int]:
    identity = json.dumps([cell.dataset.name, cell.target, cell.seed, *purpose])
    digest = hashlib.sha256(identity.encode()).digest()
    return [int.from_bytes(digest[at : at + 4], "big", signed=True) for at in (0, 4)]


def seed_of(cell: RunSpec, *purpose: str | int) -> int:
    """A stream's key as a number of 64 bits."""
    high, low = _halves(cell, *purpose)
    return (high & 0xFFFFFFFF) << 32 | (low & 0xFFFFFFFF)


@contextlib.contextmanager
def seeded(cell: RunSpec, purpose: str, device: torch.device = CPU) -> Iterator[None]:
    """Runs a block with torch's global generators, the CPU's and the device's, seeded for the cell; restores them."""
    seed = seed_of(cell, purpose) & 0x7FFFFFFFFFFFFFFF
    on_gpu = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_gpu else []):
        torch.default_generator.manual_seed(seed)
        if on_gpu:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield
