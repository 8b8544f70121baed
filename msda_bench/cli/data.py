"""`msda-bench data`: what datasets there are, where they come from, and whether they are here."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

from msda_bench.cli.parser import Commands
from msda_bench.errors import BenchError, DataError, PluginError

if TYPE_CHECKING:
    from msda_bench.api import Dataset
    from msda_bench.data import Folders
    from msda_bench.plugins import Entry, Registry

_PLAIN_WIDTH = 10_000
"""Where a program reads the output: wide enough that a row is a line."""


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


def _list(_: argparse.Namespace) -> int:
    from msda_bench.data import folders
    from msda_bench.plugins import discover

    registry, where = discover(), folders()
    rows = []
    for entry in _entries(registry):
        dataset = _created(entry)
        task = dataset.task
        what = f"{task.kind}, {task.classes} classes" if task.classes else task.kind
        rows.append(
            (entry.name, ", ".join(dataset.domains), what, dataset.licence, dataset.source, _here(dataset, where))
        )
    _print_table(("name", "domains", "task", "licence", "source", "files here"), rows)
    return _tell_problems(registry)


def _fetch(args: argparse.Namespace) -> int:
    from msda_bench.data import fetch

    problems: list[str] = []
    for dataset in _chosen(args):
        if not dataset.files:
            print(f"{dataset.name}: needs no files")
            continue
        try:
            fetch(dataset.files, report=print)
        except DataError as error:
            problems.extend(error.lines)
        else:
            print(f"{dataset.name}: all files are here ({len(dataset.files)})")
    if problems:
        raise DataError(*problems)
    return 0


def _verify(args: argparse.Namespace) -> int:
    from msda_bench.data import LocalFiles

    rows, bad = [], 0
    for dataset in _chosen(args):
        local = LocalFiles(dataset=dataset.name)
        for file in dataset.files:
            try:
                rows.append((dataset.name, file.path, f"ok: {local.path(file)}"))
            except DataError as error:
                rows.append((dataset.name, file.path, str(error)))
                bad += 1
        if not dataset.files:
            rows.append((dataset.name, "", "ok: needs no files"))
    _print_table(("dataset", "file", "state"), rows)
    return 1 if bad else 0


def _chosen(args: argparse.Namespace) -> Iterator[Dataset]:
    from msda_bench.plugins import discover

    if bool(args.names) == args.all:
        raise BenchError("name the datasets, or say --all; `msda-bench data list` shows them")
    registry = discover()
    for name in registry.names("dataset") if args.all else dict.fromkeys(args.names):
        yield _created(registry.entry("dataset", name))


def _entries(registry: Registry) -> Iterator[Entry]:
    return (entry for entry in registry.entries if entry.kind == "dataset")


def _created(entry: Entry) -> Dataset:
    """The dataset with its default parameters."""
    from pydantic import ValidationError

    try:
        return cast("Dataset", entry.create({}))
    except ValidationError:
        raise PluginError(f"dataset {entry.name!r} of {entry.origin} has a parameter without a default") from None


def _here(dataset: Dataset, where: Folders) -> str:
    from msda_bench.data.check import present

    count = sum(any(present(path, file) for path in where.candidates(file)) for file in dataset.files)
    return f"{count} of {len(dataset.files)}" if dataset.files else "needs none"


def _print_table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*heads, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))  # as text, since a path or a stranger's words may look like markup
    Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH).print(table)


def _tell_problems(registry: Registry) -> int:
    problems = [*map(str, registry.broken), *registry.conflicts]
    for problem in problems:
        print(f"msda-bench: error: {problem}", file=sys.stderr)
    return 2 if problems else 0
