"""`msda-bench suites`: lists, shows and copies the suites that come with msda-bench."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msda_bench.cli.lines import say, say_block, say_table, warn_of
from msda_bench.errors import BenchError, SuiteError

if TYPE_CHECKING:
    from msda_bench.api import File
    from msda_bench.plugins import Registry


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="show each suite, its data and its number of runs")
    listed.set_defaults(handler=_list)
    show = actions.add_parser("show", help="print a suite and the files that it includes")
    show.set_defaults(handler=_show)
    copy = actions.add_parser("copy", help="write a suite and the files that it includes into a folder, for editing")
    copy.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="the folder (this one)")
    copy.set_defaults(handler=_copy)
    for action in (show, copy):
        action.add_argument("name", metavar="NAME", help="a suite, such as quickstart")


def command(args: argparse.Namespace) -> int:
    """Carries out the action."""
    return int(args.handler(args))


def add_suite_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the suite argument to a command."""
    what = "a suite by name (`msda-bench suites list`), or a file, such as mine.yaml"
    parser.add_argument("suite", type=Path, metavar="SUITE", help=what)


def add_methods_option(parser: argparse.ArgumentParser, what: str) -> None:
    """Adds `--methods FILE` of a command that reads a suite, as `args.own`."""
    parser.add_argument("--methods", type=Path, dest="own", metavar="FILE", help=what)


class _Row(NamedTuple):
    name: str
    data: str
    here: str
    runs: str
    purpose: str


def _list(_: argparse.Namespace) -> int:
    from msda_bench.plugins import discover
    from msda_bench.suite.files import listed

    registry = discover()
    problems, unusable = registry.problems, list[str]()
    rows = [_row(name, registry, unusable) for name in listed()]
    if sys.stdout.isatty():
        for row in rows:
            say_block(f"{row.name}: {row.runs} runs on {row.data}; data here: {row.here}", [row.purpose])
    else:
        say_table(("name", "data", "data here", "runs", "what it is"), rows)
    if unusable:  # such as suites that need a missing plugin; the others can be used
        what = "`msda-bench validate NAME` says what is missing"
        warn_of([f"cannot be used with what is installed: {', '.join(unusable)}; {what}"])
    return 2 * warn_of(problems, "error")


def _row(name: str, registry: Registry, unusable: list[str]) -> _Row:
    from msda_bench.suite.expand import most_runs
    from msda_bench.suite.files import purpose, shipped
    from msda_bench.suite.load import load_suite

    try:
        suite = load_suite(shipped(name), registry)
        runs = most_runs(suite)
    except BenchError:
        unusable.append(name)
        return _Row(name, "?", "?", "?", purpose(shipped(name)))
    datasets = dict.fromkeys(one.dataset.name for one in suite.experiments)
    parts = [part.component for one in suite.experiments for part in (one.dataset, one.backbone)]
    here = _here(file for part in parts for file in part.files)
    return _Row(name, ", ".join(datasets), here, f"{runs:,}", purpose(shipped(name)))


def _here(files: Iterable[File]) -> str:
    """Whether the data are on this machine, in a word or two."""
    from msda_bench.api import ByHand
    from msda_bench.data import folders
    from msda_bench.data.check import present

    where = folders()
    missing = [file for file in files if not any(present(path, file) for path in where.candidates(file))]
    if not missing:
        return "yes"
    return "no, by hand" if any(isinstance(file.origin, ByHand) for file in missing) else "no, fetch"


def _show(args: argparse.Namespace) -> int:
    from msda_bench.suite.files import files_of, home

    suite, *parts = files_of(_named(args.name))
    for line in suite.read_text(encoding="utf-8").splitlines():
        say(line)
    for part in parts:
        say("")
        say(f"# {part.relative_to(home()).as_posix()}")
        for line in part.read_text(encoding="utf-8").splitlines():
            say(line)
    return 0


def _copy(args: argparse.Namespace) -> int:
    from msda_bench.atomic import write_new
    from msda_bench.suite.files import files_of

    suite = _named(args.name)
    copies = {path: args.out / path.relative_to(suite.parent) for path in files_of(suite)}
    there = [copy for copy in copies.values() if os.path.lexists(copy)]
    made: list[Path] = []
    for path, copy in () if there else copies.items():
        try:
            if not write_new(copy, path.read_bytes()):
                there.append(copy)  # written by another process in the meantime
                break
        except OSError as error:
            for written in (*made, copy):  # so that the same command can be given again
                written.unlink(missing_ok=True)
            raise BenchError(f"{copy}: cannot be written: {error.strerror}") from error
        made.append(copy)
    for copy in made:
        say(f"wrote {copy}")
    if there:
        names = ", ".join(map(str, there))
        raise BenchError(f"{names}: already there; name another folder with --out, or move these files")
    say(f"next: {shlex.join(['msda-bench', 'run', str(copies[suite])])}")
    return 0


def _named(name: str) -> Path:
    from msda_bench.suite.files import listed, names, shipped
    from msda_bench.suite.mistakes import hint

    if name not in names():
        raise SuiteError(f"{name}: no suite of that name comes with msda-bench{hint(name, listed())}")
    return shipped(name)
