"""Runs one command in its process and turns errors, also of its output, into lines and an exit code."""

from __future__ import annotations

import contextlib
import pkgutil
import sys
from collections.abc import Callable, Iterable, Sequence

from msda_bench.cli.command import make_parser
from msda_bench.cli.end import end, listen
from msda_bench.cli.lines import own_stdout, warn
from msda_bench.cli.output import watch_output, write_fault
from msda_bench.errors import BenchError

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
    except (OSError, SystemExit):  # rich turns a BrokenPipeError into a SystemExit
        code = _unwritten()
        if code is None:
            raise
        return code


def _report(lines: Iterable[str]) -> None:
    with contextlib.suppress(OSError):  # the exit code reports it
        for line in lines:
            warn(line)


def _unwritten() -> int | None:
    """Reports output that could not be written; returns the exit code, None if all is written."""
    found = write_fault()
    if found is None:
        return None
    name, fault = found
    if name == "stdout" and isinstance(fault, BrokenPipeError):  # the reader, such as `head`, has closed its end
        return 0
    _report([f"error: {name} cannot be written: {fault.strerror}; free space, or redirect it elsewhere"])
    return 2


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
