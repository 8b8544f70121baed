"""`msda-bench data`: what datasets there are, where they come from, and whether they are here."""

from __future__ import annotations

import argparse
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


def add_parser(commands: Commands) -> None:
    """Adds the command."""
    parser = commands.add_parser("data", help="list, fetch and verify datasets")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    actions.add_parser("list", help="show every dataset, its licence and source").set_defaults(handler=_list)
    fetch = actions.add_parser("fetch", help="download what is missing into the cache")
    verify = actions.add_parser("verify", help="check the size and checksum of every file")
    for action, handler in ((fetch, _fetch), (verify, _verify)):
        action.add_argument("names", nargs="*", metavar="NAME", help="a dataset")
        action.add_argument("--all", action="store_true", help="every dataset")
        action.set_defaults(handler=handler)


@dataclass(frozen=True)
class _Facts:
    name: str
    domains: str
    task: str
    licence: str
    source: str
    files: tuple[File, ...]


def _list(_: argparse.Namespace) -> int:
    from msda_bench.data import folders
    from msda_bench.plugins import discover

    registry, where = discover(), folders()
    problems: list[str] = []
    rows = [
        (known.name, known.domains, known.task, known.licence, known.source, _here(known.files, where))
        for known in _known(registry, registry.names("dataset"), problems)
    ]
    say_table(("name", "domains", "task", "licence", "source", "files here"), rows)
    return tell_problems(registry, problems)


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
        domains, task = ", ".join(dataset.domains), dataset.task
        what = f"{task.kind}, {task.classes} classes" if task.classes else task.kind
        return _Facts(choice.name, domains, what, str(dataset.licence), str(dataset.source), tuple(dataset.files))
    except BaseException as error:  # a stranger's properties may raise anything
        pass_interrupt(error)
        who = f"dataset {choice.name!r} of {choice.entry.origin}"
        what = f"{who} does not say what it is: {choice.entry.fault(error)}"
        raise PluginError(what) from error


def _here(files: tuple[File, ...], where: Folders) -> str:
    from msda_bench.data.check import present

    count = sum(any(present(path, file) for path in where.candidates(file)) for file in files)
    return f"{count} of {len(files)}" if files else "needs none"
