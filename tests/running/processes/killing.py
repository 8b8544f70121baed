"""Processes that kill themselves at a chosen step of a publish."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msda_bench import atomic

STEPS = [
    "open-before",
    "open-after",
    "write-half",
    "fsync-before",
    "fsync-after",
    "link-before",
    "link-after",
    "unlink-before",
    "unlink-after",
    "sync-before",  # of the folder
    "sync-after",
]
_OWNERS = {"open": Path, "write": Path, "unlink": Path, "sync": atomic}


def deaths(folder: Path) -> Path:
    """A folder that lists the steps at which a process must die, each once."""
    (folder / "died").mkdir(parents=True)
    for step in STEPS:
        (folder / step).touch()
    return folder


def arm(folder: Path, key: str) -> None:
    """Kills the process at the next step in the list, unless a process has already died at this cell."""
    if (folder / "died" / key).exists():
        return
    for step in STEPS:
        try:
            (folder / step).unlink()
        except FileNotFoundError:
            continue
        (folder / "died" / key).touch()
        _set(*step.split("-"))
        return


def _set(where: str, when: str) -> None:
    owner: Any = _OWNERS.get(where, os)
    if where == "write":
        whole = owner.open

        def torn(path: Path, mode: str = "r", **options: Any) -> Any:
            return _Torn(io.FileIO(path, mode.replace("b", ""))) if "b" in mode else whole(path, mode, **options)

        owner.open = torn
        return
    setattr(owner, where, _die if when == "before" else _die_after(getattr(owner, where)))


class _Torn(io.BufferedWriter):
    def write(self, data: Any) -> int:
        super().write(data[: len(data) // 2])
        self.flush()
        _die()
        return 0


def _die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_after(call: Callable[..., object]) -> Callable[..., None]:
    def wrapped(*args: object, **options: object) -> None:
        call(*args, **options)
        _die()

    return wrapped
