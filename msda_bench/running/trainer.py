"""How a process gets the function that trains cells."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from msda_bench.store.record import Record
from msda_bench.suite.cell import Cell

Train: TypeAlias = Callable[[Sequence[Cell]], Iterable[Record]]
"""Cells to their records, each ok or diverged, told as soon as they are known; raises on any other fault."""

ENGINE = "msda_bench.running.trainer:engine"


def engine(device: str, stack: int | None) -> Train:
    """The training core, over the installed plugins and the data of this machine; see `Trainer`."""
    from msda_bench.data.files import LocalFiles
    from msda_bench.engine.train import Trainer
    from msda_bench.plugins import discover

    return Trainer(discover(), LocalFiles(), device, stack).train


def load_trainer(path: str, device: str, stack: int | None) -> Train:
    """The function that `module:name`, called with the device and the stack size, returns.

    A process gets the path and not the function, so that torch, plugins and data are loaded where they are used.
    """
    train: Train = pkgutil.resolve_name(path)(device, stack)
    return train
