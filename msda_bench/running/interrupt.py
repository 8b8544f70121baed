"""Turns Ctrl-C and SIGTERM into a flag that is checked where it is safe to stop."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Never, Self

from msda_bench.errors import Interrupted


class Interrupt:
    """Within the block, SIGINT and SIGTERM set `requested`; repeated signals do not disturb the cleaning up.

    Signals reach only the main thread; entering it elsewhere has no effect.
    """

    def __init__(self) -> None:
        self.requested = False
        self._raise = False
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._former[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        self._former.clear()

    @contextlib.contextmanager
    def raising(self) -> Iterator[None]:
        """Within the block a signal raises Interrupted at once, for work that does not check the flag."""
        if self.requested:
            raise Interrupted
        self._raise = True
        try:
            yield
        finally:
            self._raise = False

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        if self._raise:
            self._raise = False
            raise Interrupted


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Within the block SIGTERM raises Interrupted, so that there is one way to stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _stop(_number: int, _frame: FrameType | None) -> Never:
    raise Interrupted
