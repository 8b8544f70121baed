"""Parses the command line, runs one command, and turns errors into lines and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence

from msda_bench import __version__
from msda_bench.cli.command import installed
from msda_bench.cli.lines import warn, warn_of
from msda_bench.cli.parser import Parser
from msda_bench.cli.process import INTERRUPTED, end, listen, open_streams, unwritable
from msda_bench.errors import BenchError

OK = 0
_UNUSABLE = 2
BUG = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        The exit code: 0 all ok, 1 some cells failed or missing, 2 bad suite, plugin or usage, or output that cannot be
        written, 130 interrupted. A bug raises; `entry` then exits with 3.
    """
    code = _guarded(lambda: _command(argv))
    # argparse and warnings ignore errors when they write.
    return max(code, _guarded(sys.stdout.flush), _unwritten() or OK)


def _command(argv: Sequence[str] | None) -> int:
    try:
        args = make_parser().parse_args(argv)
    except SystemExit as stop:  # argparse exits on --help and on bad usage
        return int(stop.code or 0)
    args.words = sys.argv[1:] if argv is None else argv
    try:
        return int(args.command(args))
    except Exception as error:
        from msda_bench.blame import broken_package

        broken = broken_package(error)  # a fault of the installation, not a bug
        if broken is None:
            raise
        raise broken from error


def _guarded(action: Callable[[], int | None]) -> int:
    """Runs an action and returns its exit code; prints errors that the user can fix as lines on stderr."""
    try:
        return action() or OK
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
            return _unwritten() or OK
        raise


def _unwritten() -> int | None:
    """Reports output that could not be written and returns the exit code; None if there is none."""
    fault = unwritable()
    if fault is None:
        return None
    name, why = fault
    if name == "stdout" and isinstance(why, BrokenPipeError):  # the reader, such as `head`, has closed its end
        return OK
    _report(f"error: {name} cannot be written: {why.strerror}; free space, or redirect it elsewhere")
    return _UNUSABLE


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
    try:
        code = main()
    except Exception:  # noqa: BLE001 - any other exception is a bug
        import traceback

        with contextlib.suppress(OSError):
            for line in traceback.format_exc().splitlines():
                warn(line)
            warn("this is a bug; please report it with the lines above")
        unwritable()
        code = BUG
    end(code)


def make_parser(*, whole: bool = False) -> argparse.ArgumentParser:
    """The parser of all installed commands, `whole` with all arguments; warns of each command that cannot be used."""
    parser = Parser(prog="msda-bench", description="Benchmarks multi-source domain adaptation.")
    parser.add_argument("--version", action="version", version=f"msda-bench {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    commands, faults = installed()
    warn_of(faults)
    for entry in commands:
        subparser = subparsers.add_parser(entry.command.name, help=entry.command.help)
        subparser.filler = entry.add_arguments
        subparser.set_defaults(command=entry.run)
        if whole:
            subparser.fill()
    return parser
