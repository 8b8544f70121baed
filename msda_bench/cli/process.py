"""Prepares the process of a command: output streams that record write errors, and a handler for Ctrl-C."""

from __future__ import annotations

import io
import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from msda_bench.errors import Interrupted

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

INTERRUPTED = 130
_IGNORED = 2


class _Output(io.FileIO):
    """A file that records the first write error."""

    fault: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.fault = self.fault or error
            raise


def open_streams() -> None:
    """Opens stdin, stdout and stderr, and watches them for errors.

    If they were closed, writing to stdout fails and stderr discards its text. Otherwise Python would send the text of
    stderr to stdout, and a file that is opened later could get one of their descriptors.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest free number, which is this one
    if sys.stdout is sys.__stdout__:
        sys.stdout = _watched(sys.stdout, os.O_RDONLY)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _watched(sys.stderr, os.O_WRONLY)


def _watched(stream: TextIO | None, mode: int) -> TextIO:
    if stream is None:
        return io.TextIOWrapper(io.BufferedWriter(_Output(os.open(os.devnull, mode), "w")), errors="backslashreplace")
    buffered = io.BufferedWriter(_Output(stream.fileno(), "w", closefd=False))
    at_once = mode == os.O_WRONLY or bool(stream.line_buffering) or getattr(stream, "write_through", False)
    return io.TextIOWrapper(buffered, stream.encoding, stream.errors, line_buffering=at_once)


def unwritable() -> tuple[str, OSError] | None:
    """The name of stdout or stderr and the error, if writing to it failed; the stream then discards further text."""
    for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
        raw = getattr(getattr(stream, "buffer", None), "raw", None)
        if isinstance(raw, _Output) and raw.fault is not None:
            swallow = os.open(os.devnull, os.O_WRONLY)
            os.dup2(swallow, raw.fileno())
            os.close(swallow)
            fault, raw.fault = raw.fault, None
            return name, fault
    return None


def listen() -> None:
    """Makes SIGINT raise Interrupted, unless it is ignored, as for a job in the background."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _Stopper())


def end(code: int) -> None:
    """Ends the process; SIGINT is ignored from here on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


class _Stopper:
    """Handles SIGINT: the first one raises Interrupted, the next two are ignored, the fourth ends the process at once.

    One key press may send several signals, which must not disturb the cleanup; a process that hangs can still be ended.
    """

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        if self._count == 1:
            raise Interrupted
        if self._count > 1 + _IGNORED:
            os._exit(INTERRUPTED)
