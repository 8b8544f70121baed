"""`msda-bench data`: lists datasets, their sources and licences, and their files on this machine."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from msda_bench.cli import identify, leaks
from msda_bench.cli.lines import say, say_block, say_table, warn_of
from msda_bench.errors import BenchError, DataError, PluginError, reported

if TYPE_CHECKING:
    from msda_bench.api import File
    from msda_bench.plugins import Registry
    from msda_bench.suite.choice import Configured

_COLUMN = 50
"""The maximum length of a list of domain names that is cut."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds its arguments."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listed = actions.add_parser("list", help="show every dataset, its licence and source")
    listed.add_argument("names", nargs="*", metavar="NAME", help="a dataset to show in full, with all its domains")
    listed.set_defaults(command=_list)
    fetch = actions.add_parser("fetch", help="download missing files into the cache")
    identify.add_action(actions)
    leaks.add_action(actions)
    verify = actions.add_parser("verify", help="check every file; with --all, kept arrays, too")
    for action, handler in ((fetch, _fetch), (verify, _verify)):
        action.add_argument("names", nargs="*", metavar="NAME", help="a dataset, or a backbone with weights")
        action.add_argument("--all", action="store_true", help="every dataset")
        action.set_defaults(command=handler)


class _Facts(NamedTuple):
    """The declarations of a dataset."""

    name: str
    domains: tuple[str, ...]
    task: str
    licence: str
    source: str
    files: tuple[File, ...]

    def in_words(self) -> str:
        """The number of files on this machine, in words."""
        from msda_bench.data import folders
        from msda_bench.data.check import present

        where = folders()
        here = sum(any(present(path, file) for path in where.candidates(file)) for file in self.files)
        return f"{here} of {len(self.files)}" if self.files else "needs none"


def _list(args: argparse.Namespace) -> int:
    from msda_bench.plugins import discover

    registry = discover()
    problems: list[str] = []
    known = list(_known(registry, dict.fromkeys(args.names) or registry.names("dataset"), problems))
    if args.names or sys.stdout.isatty():
        for facts in known:
            domains = ", ".join(facts.domains) if args.names else _cut(facts.domains)
            texts = (f"licence: {facts.licence}", f"source: {facts.source}", f"domains: {domains}")
            say_block(f"{facts.name}: {facts.task}; files here: {facts.in_words()}", texts)
    else:
        rows = (
            (facts.name, _cut(facts.domains), facts.task, facts.licence, facts.source, facts.in_words())
            for facts in known
        )
        say_table(("name", "domains", "task", "licence", "source", "files here"), rows)
    return 2 * warn_of([*registry.problems, *problems], "error")


def _cut(domains: tuple[str, ...]) -> str:
    """Shortens domain names, as in `books, dvd, ... (139 in all)`, to as many as fit a column, but at least one."""
    whole = ", ".join(domains)
    if len(whole) <= _COLUMN:
        return whole
    ends = itertools.accumulate(len(name) + 2 for name in domains)
    shown = sum(end <= _COLUMN for end in ends)
    return f"{', '.join(domains[: max(1, shown)])}, ... ({len(domains)} in all)"


def _fetch(args: argparse.Namespace) -> int:
    from msda_bench.data import fetch

    problems: list[str] = []
    for known in _chosen(args, problems):
        if not known.files:
            say(f"{known.name}: needs no files")
            continue
        with reported(problems):
            fetch(known.files, report=say)
            say(f"{known.name}: all files are here ({len(known.files)})")
    if problems:
        raise DataError(*problems)
    return 0


def _verify(args: argparse.Namespace) -> int:
    from msda_bench.data import LocalFiles, folders, verify_arrays

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
    kept = [("(cache)", *file) for file in verify_arrays(folders())] if args.all else []
    bad += sum(state != "ok" for _, _, state in kept)
    say_table(("dataset", "file", "state"), [*rows, *kept])
    if problems:
        raise PluginError(*problems)
    return 1 if bad else 0


def _chosen(args: argparse.Namespace, problems: list[str]) -> Iterator[_Facts]:
    from msda_bench.plugins import discover

    if bool(args.names) == args.all:
        raise BenchError("name datasets, or give --all; `msda-bench data list` shows them")
    registry = discover()
    weights = set(registry.names("backbone")) - set(registry.names("dataset"))
    return _known(registry, registry.names("dataset") if args.all else dict.fromkeys(args.names), problems, weights)


def _known(
    registry: Registry, names: Iterable[str], problems: list[str], backbones: Container[str] = ()
) -> Iterator[_Facts]:
    """The declarations of datasets with default parameters; adds lines to `problems` for those that fail.

    Names in `backbones` are backbones, which declare the files of their weights.
    """
    from msda_bench.suite.choice import make

    for name in names:
        try:
            yield _facts(make(registry, "backbone" if name in backbones else "dataset", name, {}))
        except PluginError as error:
            problems.extend(error.lines)


def _facts(choice: Configured[Any]) -> _Facts:
    dataset = choice.component
    with choice.entry.blamed("cannot be inspected"):
        if choice.entry.kind == "backbone":
            return _Facts(choice.name, (), "", "", "", tuple(dataset.files))
        domains, task = tuple(map(str, dataset.domains)), dataset.task
        what = f"{task.kind}, {task.classes} classes" if task.classes else task.kind
        return _Facts(choice.name, domains, what, str(dataset.licence), str(dataset.source), tuple(dataset.files))
