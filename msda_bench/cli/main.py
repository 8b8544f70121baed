"""The command line: parses, runs one command, turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from msda_bench import __version__
from msda_bench.cli import (
    check,
    compare,
    data,
    leaderboard,
    new,
    plugins,
    report,
    run,
    schema,
    selection,
    sources,
    store,
    validate,
    verify,
    weights,
)
from msda_bench.cli.parser import Parser
from msda_bench.errors import BenchError

OK = 0
BUG = 3
INTERRUPTED = 130
_COMMANDS: tuple[ModuleType, ...] = (
    *(run, compare, leaderboard, report, verify, weights, sources, selection),
    *(validate, plugins, check, new, data, schema, store),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Returns:
        0 all ok, 1 some cells failed or missing, 2 bad suite, plugin or usage, 3 a bug, 130 interrupted.
    """
    try:
        args = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse exits by itself on --help and on bad usage
        return int(stop.code or 0)
    args.words = sys.argv[1:] if argv is None else argv
    try:
        code = _handled(args)
        sys.stdout.flush()
    except BenchError as error:
        for line in error.lines:
            print(f"msda-bench: error: {line}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("msda-bench: interrupted; the same command goes on where it stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return _unread()
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # rich turns the one into the other
            return _unread()
        raise
    return code


def _handled(args: argparse.Namespace) -> int:
    """Runs the command; a package that cannot be imported is a fault of the installation, not a bug of ours."""
    try:
        return int(args.handler(args))
    except Exception as error:
        from msda_bench.blame import broken_package

        broken = broken_package(error)
        if broken is None:
            raise
        raise broken from error


def _unread() -> int:
    """The reader of our output, such as `head`, went away: no error, but what is still buffered must go somewhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK


def entry() -> None:
    """The console script; an error that is a bug of ours keeps its traceback and exits with 3."""
    try:
        code = main()
    except Exception:  # noqa: BLE001 - whatever it is, it is a bug
        import traceback

        traceback.print_exc()
        print("msda-bench: this is a bug; please report it with the lines above", file=sys.stderr)
        code = BUG
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="msda-bench", description="Benchmarks multi-source domain adaptation.")
    parser.add_argument("--version", action="version", version=f"msda-bench {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser
