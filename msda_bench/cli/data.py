"""`msda-bench data`: lists datasets, their licences and their files on this machine."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from msda_bench import data, plugins
from msda_bench.api import File
from msda_bench.cli.lines import out, say, say_block, say_table, warn_of
from msda_bench.data.checksums import present
from msda_bench.errors import BenchError, DataError, PluginError, reported
from msda_bench.suite.choice import Configured, make

_COLUMN = 50
"""The maximum length of a list of domain names that is cut."""


def listing(*, names: Sequence[str]) -> int:
    """Shows every dataset, or some in full."""
    registry = plugins.discover(kinds=("dataset",))
    problems: list[str] = []
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys(names) or registry.names("dataset"):
        with reported(problems):
            rows.append(_declarations(make(registry, "dataset", name, {}), whole=bool(names)))
    if names or out().isatty():
        for name, domains, task, licence, source, here in rows:
            texts = (f"licence: {licence}", f"source: {source}", f"domains: {domains}")
            say_block(f"{name}: {task}; files here: {here}", texts)
    else:
        say_table(("name", "domains", "task", "licence", "source", "files here"), rows)
    return 2 * warn_of([*registry.problems, *problems], "error")


def _declarations(choice: Configured[Any], *, whole: bool) -> tuple[str, ...]:
    """Describes a dataset, with `whole` all of its domains, and how many of its files are here."""
    dataset, where = choice.component, data.folders()
    with choice.entry.plugin_errors("cannot be inspected"):
        domains, task, files = tuple(map(str, dataset.domains)), dataset.task, tuple(dataset.files)
        what = f"{task.kind}, {task.classes} classes" if task.classes else task.kind
        origin = str(dataset.licence), str(dataset.source)
    here = sum(any(present(path, file) for path in where.candidates(file)) for file in files)
    shown = ", ".join(domains) if whole else _cut(domains)
    return choice.name, shown, what, *origin, f"{here} of {len(files)}" if files else "needs none"


def _cut(domains: tuple[str, ...]) -> str:
    """Shortens domain names, as in `books, dvd, ... (139 in all)`, to as many as fit a column, but at least one."""
    whole = ", ".join(domains)
    if len(whole) <= _COLUMN:
        return whole
    ends = itertools.accumulate(len(name) + 2 for name in domains)
    shown = sum(end <= _COLUMN for end in ends)
    return f"{', '.join(domains[: max(1, shown)])}, ... ({len(domains)} in all)"


def fetch(*, names: Sequence[str], all: bool) -> int:
    """Downloads missing files."""
    problems: list[str] = []
    for name, files in _chosen(names, problems, every=all):
        if not files:
            say(f"{name}: needs no files")
            continue
        with reported(problems):
            data.fetch(files, report=say)
            say(f"{name}: all files are here ({len(files)})")
    if problems:
        raise DataError(*problems)
    return 0


def verify(*, names: Sequence[str], all: bool) -> int:
    """Checks every file, and with `--all` kept arrays."""
    problems: list[str] = []
    rows, bad = [], 0
    for name, files in _chosen(names, problems, every=all):
        local = data.LocalFiles(dataset=name)
        for file in files:
            try:
                rows.append((name, file.path, f"ok: {local.path(file)}"))
            except DataError as error:
                rows.append((name, file.path, str(error)))
                bad += 1
        if not files:
            rows.append((name, "", "ok: needs no files"))
    kept = [("(cache)", *file) for file in data.verify_arrays(data.folders())] if all else []
    bad += sum(not state.startswith("ok") for _, _, state in kept)
    say_table(("dataset", "file", "state"), [*rows, *kept])
    if problems:
        raise PluginError(*problems)
    return 1 if bad else 0


def _chosen(names: Sequence[str], problems: list[str], *, every: bool) -> Iterator[tuple[str, tuple[File, ...]]]:
    """The files of the chosen datasets, or of backbones, by name; adds lines to `problems` for failures."""
    if bool(names) == every:
        raise BenchError("name datasets, or give --all; `msda-bench data list` shows them")
    registry = plugins.discover()
    datasets = registry.names("dataset")
    weights = set(registry.names("backbone")) - set(datasets)
    chosen = datasets if every else dict.fromkeys(names)
    for name in chosen:
        files: tuple[File, ...] | None = None
        with reported(problems):
            choice = make(registry, "backbone" if name in weights else "dataset", name, {})
            with choice.entry.plugin_errors("cannot be inspected"):
                files = tuple(choice.component.files)
        if files is not None:
            yield name, files
