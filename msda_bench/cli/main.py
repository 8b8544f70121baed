"""Runs one command in its process: errors become lines and an exit code, also of output that cannot be written."""

from __future__ import annotations

import contextlib
import io
import os
import pkgutil
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from msda_bench.cli.command import make_parser
from msda_bench.cli.end import end
from msda_bench.cli.lines import out, own_stdout, warn
from msda_bench.errors import BenchError, Interrupted

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        The exit code: 0 all ok, 1 some runs failed or missing, 2 bad suite, plugin or usage, or output that cannot be
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
        from msda_bench.plugin_errors import broken_package

        broken = broken_package(error)  # a fault of the installation, not a bug
        if broken is None:
            raise
        raise broken from error


def _guarded(action: Callable[[], int | None]) -> int:
    """Runs an action and returns its exit code; prints errors that the user can fix as lines on stderr."""
    try:
        return action() or 0
    except BenchError as error:
        _report(f"error: {line}" for line in error.lines)
        return error.exit_code
    except KeyboardInterrupt:
        _report(["interrupted; run the same command again to resume"])
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


def _report(lines: Iterable[str]) -> None:
    with contextlib.suppress(OSError):  # the exit code reports it
        for line in lines:
            warn(line)


def _unwritten() -> int | None:
    """Reports output that could not be written and discards the rest; returns the exit code, None if all is written."""
    for name, stream in (("stdout", out()), ("stderr", sys.stderr)):
        raw = getattr(getattr(stream, "buffer", None), "raw", None)
        if not isinstance(raw, _Output) or raw.fault is None:
            continue
        fault, raw.fault = raw.fault, None
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, raw.fileno())
        os.close(nowhere)
        if name == "stdout" and isinstance(fault, BrokenPipeError):  # the reader, such as `head`, has closed its end
            return 0
        _report([f"error: {name} cannot be written: {fault.strerror}; free space, or redirect it elsewhere"])
        return 2
    return None


def entry() -> None:
    """Runs the console script; a bug prints its traceback and exits with 3."""
    watch_output()
    listen()
    try:
        code = main()
    except Exception:  # noqa: BLE001 - any other exception is a bug
        import traceback

        _report([*traceback.format_exc().splitlines(), "this is a bug; please report it with the lines above"])
        _unwritten()
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


def watch_output() -> None:
    """Records errors of writing to stdout and stderr. File descriptor 1 is stderr's from here on."""
    stdout, stderr = sys.stdout, sys.stderr
    sys.stdout = _watched(stdout, at_once=False)
    if stdout is not None and stderr is not None:
        os.dup2(2, 1)  # what a plugin's libraries and processes print is not of the command's output
    sys.stderr = _watched(stderr, at_once=True)


def _watched(stream: TextIO | None, *, at_once: bool) -> TextIO:
    """The stream on a descriptor of its own, so that closing the standard one does not close it."""
    if stream is None:  # its descriptor was closed
        return Path(os.devnull).open("w", encoding="utf-8")
    buffered = io.BufferedWriter(_Output(os.dup(stream.fileno()), "w"))
    at_once = at_once or bool(stream.line_buffering)
    # A character that the encoding does not have is escaped: it must not cost the output of a whole run.
    return io.TextIOWrapper(buffered, stream.encoding, "backslashreplace", line_buffering=at_once)


def listen() -> None:
    """Makes the first SIGINT raise Interrupted and ignores others, unless all are ignored, as in the background."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def _stop(*_: object) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # further ones would disturb the cleaning up
    raise Interrupted
