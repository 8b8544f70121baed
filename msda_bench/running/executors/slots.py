"""Slots: what each worker process of a machine has to itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypeAlias

Slot: TypeAlias = Mapping[str, str]
"""Environment variables of the worker, set before it starts and so before torch reads them."""

ONE_THREAD: Slot = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""One process a core with one thread each is fastest on small batches, and gives the same numbers on every machine."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"


def slots(device: str, workers: int) -> tuple[Slot, ...]:
    """A slot for each worker: a core's thread; with "cuda" a GPU, too, and they share where there are fewer GPUs."""
    gpus = _gpus() if device == "cuda" else []
    if not gpus:
        return (ONE_THREAD,) * workers
    return tuple({**ONE_THREAD, _VISIBLE: gpus[number % len(gpus)]} for number in range(workers))


def _gpus() -> list[str]:
    """The GPUs of this process, as the driver names them: the user may have given it some of the machine's only."""
    import torch

    count = torch.cuda.device_count()
    given = os.environ.get(_VISIBLE)
    return [str(number) for number in range(count)] if given is None else given.split(",")[:count]
