"""Records of cells that gave no result."""

from __future__ import annotations

import sys
import traceback

from msda_bench.errors import BenchError, describe, message_of, pass_interrupt, printable
from msda_bench.store.record import Record, Status
from msda_bench.suite.cell import Cell

_MOST = 50_000
"""Characters of a traceback that are kept."""


def failure_of(key: str, cell: Cell, error: BaseException, seconds: float) -> Record:
    """The record of a cell whose training raised; a fault that no user can mend keeps its traceback."""
    if issubclass(type(error), BenchError):
        return failure(key, cell, "failed", message_of(error), seconds)
    status: Status = "oom" if _out_of_memory(error) else "failed"
    return failure(key, cell, status, describe(error), seconds, _trace(error))


def failure(key: str, cell: Cell, status: Status, message: str, seconds: float, trace: str | None = None) -> Record:
    """The record of a cell that gave no result.

    Args:
        key: the cell's key.
        cell: the cell.
        status: failed, timeout, oom or skipped.
        message: what went wrong; made one line.
        seconds: how long the attempt took.
        trace: the traceback, if there is one.
    """
    return Record(
        key=key,
        cell=cell.to_json(),
        status=status,
        message=printable(message),
        timing={"attempt": round(seconds, 4)},
        provenance={} if trace is None else {"traceback": trace},
    )


def _out_of_memory(error: BaseException) -> bool:
    torch = sys.modules.get("torch")  # without torch nothing of its kind was raised
    kinds = (MemoryError,) if torch is None else (MemoryError, torch.OutOfMemoryError)
    kind = type(error)  # `isinstance` asks a `__class__`, too, which may be the plugin's own
    return issubclass(kind, kinds) or (issubclass(kind, RuntimeError) and "DefaultCPUAllocator" in message_of(error))


def _trace(error: BaseException) -> str:
    """The traceback; of a long one its beginning and its end."""
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException as fault:  # noqa: BLE001 - a stranger's exception may raise where it is looked at
        pass_interrupt(fault)
        text = f"{''.join(traceback.format_tb(error.__traceback__))}{describe(error)}\n"
    if len(text) > _MOST:
        left_out = f"\n... {len(text) - _MOST} characters left out ...\n"
        text = text[: _MOST // 2] + left_out + text[-_MOST // 2 :]
    return text.encode(errors="backslashreplace").decode()
