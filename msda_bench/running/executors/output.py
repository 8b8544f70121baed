"""What a worker process prints, passed on to the screen."""

from __future__ import annotations

import contextlib
import os
import sys
import threading

from msda_bench.errors import printable

MOST = 1 << 18
"""Bytes of a worker's output that are passed on."""
_PATIENCE = 1.0


class Output:
    """Passes on what a worker prints to stderr, since stdout is for tables: whole printable lines, and no megabytes.

    A thread reads all that the worker writes, so that a worker never waits for a screen.

    Attributes:
        handle: file descriptor that the worker writes to, to be closed with `hand_over` once the worker has it.
    """

    def __init__(self) -> None:
        read, self.handle = os.pipe()
        self._thread = threading.Thread(target=_pass_on, args=(read,), daemon=True)
        self._thread.start()

    def hand_over(self) -> None:
        """Closes this process's copy of the handle."""
        os.close(self.handle)

    def finish(self) -> None:
        """Waits until the last words of an ended worker are passed on; a child that outlives it is not waited for."""
        self._thread.join(_PATIENCE)


def _pass_on(handle: int) -> None:
    with os.fdopen(handle, "rb") as stream:
        left = MOST
        while left > 0 and (line := stream.readline(left)):
            left -= len(line)
            if left > 0:
                _write(printable(line.decode(errors="backslashreplace").rstrip(), MOST))
        if left == 0:
            _write(f"msda-bench: a worker process printed more than {MOST >> 10} KiB; the rest is left out")
        while stream.read(1 << 16):
            pass


def _write(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # a screen that is gone is no fault of the worker
        sys.stderr.write(f"{line}\n")
