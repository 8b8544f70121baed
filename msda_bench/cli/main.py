"""Runs one command in its process: output that records write errors, Ctrl-C, and errors as lines and an exit code."""

from __future__ import annotations

import contextlib
import io
import os
import pkgutil
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from msda_bench.cli.command import make_parser
from msda_bench.cli.end import end
from msda_bench.cli.lines import out, own_stdout, warn
from msda_bench.errors import BenchError, Interrupted

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

INTERRUPTED = 130
_IGNORED = 2
"""Signals after the first that are ignored."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        The exit code: 0 all ok, 1 some cells failed or missing, 2 bad suite, plugin or usage, or output that cannot be
        written, 130 interrupted. A bug raises; `entry` then exits with 3.
    """
    code = _guarded(lambda: _command(argv))
    # argparse and warnings ignore errors when they write.
    return max(code, _guarded(sys.stdout.flush), _unwritten() or 0)


def _command(argv: Sequence[str] | None) -> int:
    words = sys.argv[1:] if argv is None else argv
    try:
        options = vars(make_parser().parse_args(words or ["--help"]))
    except SystemExit as stop:  # argparse exits on --help and on bad usage
        return int(stop.code or 0)
    try:
        with own_stdout():
            command: Callable[..., int] = pkgutil.resolve_name(f"msda_bench.cli.{options.pop('calls')}")
            return command(**options)
    except Exception as error:
        from msda_bench.blame import broken_package

        broken = broken_package(error)  # a fault of the installation, not a bug
        if broken is None:
            raise
        raise broken from error


def _guarded(action: Callable[[], int | None]) -> int:
    """Runs an action and returns its exit code; prints errors that the user can fix as lines on stderr."""
    try:
        return action() or 0
    except BenchError as error:
        _report(*(f"error: {line}" for line in error.lines))
        return error.exit_code
    except KeyboardInterrupt:
        _report("interrupted; run the same command again to resume")
        return INTERRUPTED
    except OSError:
        code = _unwritten()
        if code is None:
            raise
        return code
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # rich turns one into the other
            return _unwritten() or 0
        raise


def _unwritten() -> int | None:
    """Reports output that could not be written and returns the exit code; None if there is none."""
    fault = unwritable()
    if fault is None:
        return None
    name, why = fault
    if name == "stdout" and isinstance(why, BrokenPipeError):  # the reader, such as `head`, has closed its end
        return 0
    _report(f"error: {name} cannot be written: {why.strerror}; free space, or redirect it elsewhere")
    return 2


def _report(*lines: str) -> None:
    try:
        for line in lines:
            warn(line)
    except OSError:  # only the exit code can report it
        unwritable()


def entry() -> None:
    """Runs the console script; a bug prints its traceback and exits with 3."""
    open_streams()
    listen()
    if os.path.expanduser("~") == "~":  # noqa: PTH111 - Path.home raises, which libraries call as they are imported
        os.environ["HOME"] = "/"  # as Docker does for a user without an entry in the passwd file
    try:
        code = main()
    except Exception:  # noqa: BLE001 - any other exception is a bug
        import traceback

        with contextlib.suppress(OSError):
            for line in traceback.format_exc().splitlines():
                warn(line)
            warn("this is a bug; please report it with the lines above")
        unwritable()
        code = 3
    end(code)


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
    """Opens stdin, stdout and stderr, and watches them for errors. Descriptor 1 is stderr's from here on.

    If they were closed, writing to stdout fails and stderr discards its text. Otherwise Python would send the text of
    stderr to stdout, and a file that is opened later could get one of their descriptors.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # Gets the lowest free number, which is this one; workers must have it, too.
            os.set_inheritable(os.open(os.devnull, mode), True)  # noqa: FBT003
    if sys.stdout is sys.__stdout__:
        sys.stdout = _watched(sys.stdout, os.O_RDONLY)
        os.dup2(2, 1)  # what a plugin's libraries and processes print is not of the command's output
    if sys.stderr is sys.__stderr__:
        sys.stderr = _watched(sys.stderr, os.O_WRONLY)


def _watched(stream: TextIO | None, mode: int) -> TextIO:
    """The stream on a descriptor of its own, so that closing the standard one does not close it."""
    if stream is None:
        return io.TextIOWrapper(io.BufferedWriter(_Output(os.open(os.devnull, mode), "w")), errors="backslashreplace")
    buffered = io.BufferedWriter(_Output(os.dup(stream.fileno()), "w"))
    at_once = mode == os.O_WRONLY or bool(stream.line_buffering) or getattr(stream, "write_through", False)
    # A character that the encoding does not have is escaped: it must not cost the output of a whole run.
    return io.TextIOWrapper(buffered, stream.encoding, "backslashreplace", line_buffering=at_once)


def unwritable() -> tuple[str, OSError] | None:
    """The name of stdout or stderr and the error, if writing to it failed; the stream then discards further text."""
    for name, stream in (("stdout", out()), ("stderr", sys.stderr)):
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
