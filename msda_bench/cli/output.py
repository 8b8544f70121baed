"""Notices that output cannot be written, as on a full disk or into a closed pipe, even where a library hides it."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msda_bench.cli.lines import out

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Output(io.FileIO):
    """A file that records the first write error."""

    fault: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.fault = self.fault or error
            raise


def watch_output() -> None:
    """Records errors of writing to stdout and stderr. File descriptor 1 is stderr's from here on."""
    stdout, stderr = sys.stdout, sys.stderr
    sys.stdout = _watched(stdout, at_once=False)
    if stdout is not None and stderr is not None:
        os.dup2(2, 1)  # what a plugin's libraries and processes print is not part of the command's output
    sys.stderr = _watched(stderr, at_once=True)


def _watched(stream: TextIO | None, *, at_once: bool) -> TextIO:
    """The stream on a descriptor of its own, so that closing the standard one does not close it."""
    if stream is None:  # its descriptor was closed
        return Path(os.devnull).open("w", encoding="utf-8")
    buffered = io.BufferedWriter(_Output(os.dup(stream.fileno()), "w"))
    at_once = at_once or bool(stream.line_buffering)
    # A character that the encoding does not have is escaped: it must not cost the output of a whole run.
    return io.TextIOWrapper(buffered, stream.encoding, "backslashreplace", line_buffering=at_once)


def write_fault() -> tuple[str, OSError] | None:
    """The stream that could not be written, with its error, which is then forgotten; what follows is discarded."""
    for name, stream in (("stdout", out()), ("stderr", sys.stderr)):
        raw = getattr(getattr(stream, "buffer", None), "raw", None)
        if not isinstance(raw, _Output) or raw.fault is None:
            continue
        fault, raw.fault = raw.fault, None
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, raw.fileno())
        os.close(nowhere)
        return name, fault
    return None
