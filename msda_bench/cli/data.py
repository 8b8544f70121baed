"""`msda-bench data`: what datasets there are, where they come from, and whether they are here."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msda_bench.cli.lines import say, say_table
from msda_bench.cli.parser import Commands
from msda_bench.cli.problems import tell_problems
from msda_bench.errors import BenchError, DataError, PluginError, pass_interrupt

if TYPE_CHECKING:
    from msda_bench.api import Dataset, File
    from msda_bench.data import Folders
    from msda_bench.plugins import Registry
    from msda_bench.suite.choice import Configured

_COLUMN = 50
"""Characters of domain names where not all are shown."""
_SCHEMA = 1
"""Version of the layout of `data list --json`."""


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("data", help="list, fetch and verify datasets")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="show every dataset, its licence and source")
    listed.add_argument("names", nargs="*", metavar="NAME", help="a dataset to show in full, with all its domains")
    listed.add_argument("--json", action="store_true", help="print all of it as one JSON document")
    listed.set_defaults(handler=_list)
    fetch = actions.add_parser("fetch", help="download what is missing into the cache")
    verify = actions.add_parser("verify", help="check the size and checksum of every file")
    for action, handler in ((fetch, _fetch), (verify, _verify)):
        action.add_argument("names", nargs="*", metavar="NAME", help="a dataset")
        action.add_argument("--all", action="store_true", help="every dataset")
        action.set_defaults(handler=handler)


@dataclass(frozen=True)
class _Facts:
    name: str
    domains: tuple[str, ...]
    task: str
    licence: str
    source: str
    files: tuple[File, ...]


def _list(args: argparse.Namespace) -> int:
    from msda_bench.data import folders
    from msda_bench.plugins import discover

    registry, where = discover(), folders()
    problems: list[str] = []
    names = dict.fromkeys(args.names) or registry.names("dataset")
    known = [(one, _count_here(one.files, where)) for one in _known(registry, names, problems)]
    if args.json:
        print(_json(known))
    elif args.names or sys.stdout.isatty():
        _say_blocks(known, whole=bool(args.names))
    else:
        rows = ((one.name, _cut(one.domains), one.task, one.licence, one.source, _of(n, one)) for one, n in known)
        say_table(("name", "domains", "task", "licence", "source", "files here"), rows)
    return tell_problems(registry, problems)


def _cut(domains: tuple[str, ...]) -> str:
    """`books, dvd, ... (139 in all)`: the first names, as many as fit a column, but one at least."""
    whole = ", ".join(domains)
    if len(whole) <= _COLUMN:
        return whole
    shown = list(itertools.takewhile(lambda end: end <= _COLUMN, itertools.accumulate(len(one) + 2 for one in domains)))
    return f"{', '.join(domains[: max(1, len(shown))])}, ... ({len(domains)} in all)"


def _say_blocks(known: Iterable[tuple[_Facts, int]], *, whole: bool) -> None:
    """Some lines of at most 80 characters for each dataset."""
    for one, count in known:
        domains = ", ".join(one.domains) if whole else _cut(one.domains)
        say(f"{one.name}: {one.task}; files here: {_of(count, one)}")
        for head, text in (("licence", one.licence), ("source", one.source), ("domains", domains)):
            for line in textwrap.wrap(
                f"{head}: {text}", 80, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
            ):
                say(line)


def _json(known: Iterable[tuple[_Facts, int]]) -> str:
    datasets = [
        {
            **{name: getattr(one, name) for name in ("name", "domains", "task", "licence", "source")},
            "files": [file.path for file in one.files],
            "files_here": count,
        }
        for one, count in known
    ]
    return json.dumps({"schema": _SCHEMA, "command": "data list", "datasets": datasets}, indent=2)


def _fetch(args: argparse.Namespace) -> int:
    from msda_bench.data import fetch

    problems: list[str] = []
    for known in _chosen(args, problems):
        if not known.files:
            say(f"{known.name}: needs no files")
            continue
        try:
            fetch(known.files, report=say)
        except DataError as error:
            problems.extend(error.lines)
        else:
            say(f"{known.name}: all files are here ({len(known.files)})")
    if problems:
        raise DataError(*problems)
    return 0


def _verify(args: argparse.Namespace) -> int:
    from msda_bench.data import LocalFiles

    problems: list[str] = []
    rows, bad = [], 0
    for known in _chosen(args, problems):
        local = LocalFiles(dataset=known.name)
        for file in known.files:
            try:
                rows.append((known.name, file.path, f"ok: {local.path(file)}"))
            except DataError as error:
                rows.append((known.name, file.path, str(error)))
                bad += 1
        if not known.files:
            rows.append((known.name, "", "ok: needs no files"))
    say_table(("dataset", "file", "state"), rows)
    if problems:
        raise PluginError(*problems)
    return 1 if bad else 0


def _chosen(args: argparse.Namespace, problems: list[str]) -> Iterator[_Facts]:
    from msda_bench.plugins import discover

    if bool(args.names) == args.all:
        raise BenchError("name the datasets, or say --all; `msda-bench data list` shows them")
    registry = discover()
    return _known(registry, registry.names("dataset") if args.all else dict.fromkeys(args.names), problems)


def _known(registry: Registry, names: Iterable[str], problems: list[str]) -> Iterator[_Facts]:
    """What the datasets say of themselves, with their default parameters; a line in `problems` for one that cannot."""
    from msda_bench.suite.choice import make

    for name in names:
        try:
            yield _facts(make(registry, "dataset", name, {}))
        except PluginError as error:
            problems.extend(error.lines)


def _facts(choice: Configured[Dataset]) -> _Facts:
    dataset = choice.component
    try:
        domains, task = tuple(map(str, dataset.domains)), dataset.task
        what = f"{task.kind}, {task.classes} classes" if task.classes else task.kind
        return _Facts(choice.name, domains, what, str(dataset.licence), str(dataset.source), tuple(dataset.files))
    except BaseException as error:  # a stranger's properties may raise anything
        pass_interrupt(error)
        who = f"dataset {choice.name!r} of {choice.entry.origin}"
        what = f"{who} cannot be inspected: {choice.entry.fault(error)}"
        raise PluginError(what) from error


def _count_here(files: tuple[File, ...], where: Folders) -> int:
    from msda_bench.data.check import present

    return sum(any(present(path, file) for path in where.candidates(file)) for file in files)


def _of(count: int, one: _Facts) -> str:
    return f"{count} of {len(one.files)}" if one.files else "needs none"
