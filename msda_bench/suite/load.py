"""Loads a suite: reads its files, validates them, and reports all their mistakes at once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from msda_bench.errors import SuiteError
from msda_bench.plugins import Registry
from msda_bench.suite.check import check_experiment
from msda_bench.suite.choice import Context
from msda_bench.suite.facts import without_each_source
from msda_bench.suite.files import UnreadableError, find_suite, included, names, read_bytes
from msda_bench.suite.json_schema import keys_at
from msda_bench.suite.mistakes import Fault, faults, shown
from msda_bench.suite.reader import Document, parse_document
from msda_bench.suite.spec import ExperimentFile, IncludeFile

SCHEMA = 1
MAX_FILES = 100
MAX_LINES = 50


@dataclass(frozen=True)
class Suite:
    """A checked suite: its own experiment, or those of the suites that it includes, in order.

    With `fetch` a run may download the data; it is set if any file sets it.
    """

    name: str
    experiments: tuple[ExperimentFile, ...]
    fetch: bool


def load_suite(given: str | Path, registry: Registry) -> Suite:
    """The suite of a file, with all included files.

    Args:
        given: the file, or the name of a suite that comes with msda-bench.
        registry: the installed components.

    Raises:
        SuiteError: one line for each mistake, `file:line:column: path: what`.
    """
    path = find_suite(given)
    try:
        data = read_bytes(path, names())
    except UnreadableError as error:
        raise SuiteError(f"{path}: {error}") from None
    return parse_suite(data, path, registry)


def parse_suite(data: bytes, path: Path, registry: Registry) -> Suite:
    """As `load_suite`, of a file's contents; others are included from its folder."""
    loader = _Loader(registry, path.parent)
    top = loader.visit(data, path)
    lines = [line for document in loader.documents for line in document.lines()]
    if top is None or lines:
        more = [f"{path}: and {len(lines) - MAX_LINES} more mistakes"] if len(lines) > MAX_LINES else []
        raise SuiteError(*lines[:MAX_LINES], *more)
    return Suite(top.name, tuple(loader.experiments), loader.fetch)


class _Loader:
    def __init__(self, registry: Registry, top: Path) -> None:
        self.documents: list[Document] = []
        self.experiments: list[ExperimentFile] = []
        self.fetch = False
        self._registry = registry
        self._top = top
        self._seen: set[str] = set()
        self._named = 0

    def visit(self, data: bytes, path: Path) -> ExperimentFile | IncludeFile | None:
        """Reads a file and its included files; None if it is not valid."""
        self._seen.add(os.path.realpath(path))
        document = parse_document(data, str(path))
        self.documents.append(document)
        file = _validate(document, Context(self._registry, path.parent, self._top))
        self.fetch |= file is not None and file.fetch
        if isinstance(file, ExperimentFile):
            for experiment in (file, *without_each_source(file)):
                if any(experiment.name == other.name for other in self.experiments):
                    document.add(
                        Fault(("name",), f"another experiment is called {shown(experiment.name)}, too; rename one")
                    )
                self.experiments.append(experiment)
        elif file is not None:
            self._include(file, document, path)
        return file

    def _include(self, joined: IncludeFile, document: Document, path: Path) -> None:
        for index, name in enumerate(joined.include):
            self._named += 1
            if self._named > MAX_FILES:
                document.add(Fault(("include", index), f"is one file too many; a suite joins at most {MAX_FILES}"))
                return
            try:
                other = included(name, path.parent, self._top, self._seen)
                data = read_bytes(other)
            except UnreadableError as error:
                document.add(Fault(("include", index), f"{shown(name)} {error}"))
            else:
                before = len(self.experiments)
                self.visit(data, other)
                self.experiments[before:] = [_measured(experiment, joined) for experiment in self.experiments[before:]]


def _measured(experiment: ExperimentFile, joined: IncludeFile) -> ExperimentFile:
    """The experiment with the metric of the suite that includes it, unless it has its own or another task."""
    if joined.metric is None or experiment.metric is not None or experiment.published is not None:
        return experiment
    fits = experiment.dataset.component.task.kind in joined.metric.component.tasks
    return experiment.model_copy(update={"metric": joined.metric}) if fits else experiment


def _validate(document: Document, context: Context) -> ExperimentFile | IncludeFile | None:
    raw = document.value
    if not isinstance(raw, dict):
        document.add(Fault((), f"must be a mapping with keys such as schema and name, not {shown(raw)}"))
        return None
    version = raw.get("schema")
    if isinstance(version, int) and version > SCHEMA:
        # Do not check another version's keys.
        document.add(Fault(("schema",), f"is {version}, but this msda-bench reads {SCHEMA}; install a newer one"))
        return None
    model = IncludeFile if "include" in raw else ExperimentFile
    result: ExperimentFile | IncludeFile | None = None
    mistakes: list[Fault] = []
    try:
        result = model.model_validate(raw, context=context)
    except ValidationError as error:
        mistakes += faults(error, partial(keys_at, model))
    mistakes += check_experiment(context.sound)
    for fault in mistakes:
        beside = model is IncludeFile and fault.where == "key" and fault.loc[0] in keys_at(ExperimentFile, ())[1]
        what = "is not allowed with include; give the experiment its own file" if beside else fault.what
        document.add(fault._replace(what=what))
    return None if mistakes else result
