"""Loads a suite: reads and validates its files, and reports all mistakes at once. And the JSON schema of suites."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from msda_bench.errors import BenchError, SuiteError
from msda_bench.plugins import KINDS, Entry, Registry
from msda_bench.suite.check import check_experiment
from msda_bench.suite.choice import Context
from msda_bench.suite.described import OwnMethods
from msda_bench.suite.files import UnreadableError, find_suite, included, names, read_bytes
from msda_bench.suite.issues import PLAIN_NAME, PLAIN_WORDS, ValidationIssue, faults, shown
from msda_bench.suite.reader import Document, parse_document
from msda_bench.suite.resolved import ResolvedExperiment, without_each_source
from msda_bench.suite.spec import ExperimentFile, IncludeFile

SCHEMA = 1
MAX_FILES = 100
MAX_LINES = 50
_OF_METHODS = {"methods", "requires"}
"""The keys of a file that replaces a suite's methods."""
_OF_SUITES_METHODS = {"baseline", "pairs", "headroom"}
"""The keys of `compare` that name methods or need one."""


@dataclass(frozen=True)
class Suite:
    """A checked suite: its own experiment, or those of the suites that it includes, in order.

    With `fetch` a run may download the data; it is set if any file sets it.
    """

    name: str
    experiments: tuple[ResolvedExperiment, ...]
    fetch: bool


def load_suite(
    given: str | Path, registry: Registry, methods: Path | None = None, added: OwnMethods | None = None
) -> Suite:
    """The suite of a file, or of the name of one that comes with msda-bench, with all included files.

    The methods of the file `methods` replace those of every experiment; its name is added to the suite's. Those of
    `added` are estimators of this Python session, beside those of every experiment (`own_methods`).

    Raises:
        SuiteError: one line for each mistake, `file:line:column: path: what`.
    """
    own, path = None if methods is None else _own_methods(methods), find_suite(given)
    try:
        data = read_bytes(path, names())
    except UnreadableError as error:
        raise SuiteError(f"{path}: {error}") from None
    suite = parse_suite(data, path, registry, own, added)
    if methods is None:
        return suite
    name = f"{suite.name}-{methods.stem}"
    if not re.fullmatch(PLAIN_NAME, name):
        raise SuiteError(f"{methods}: rename it: the result folder would be {shown(name)}, but may be {PLAIN_WORDS}")
    return replace(suite, name=name)


def _own_methods(path: Path) -> Document:
    """The file that replaces a suite's methods; a SuiteError if it lacks `methods`, or has what is the suite's."""
    try:
        document = parse_document(read_bytes(path), str(path))
    except UnreadableError as error:
        what = "--methods names a file with methods; --only method=A|B trains a part of the suite"
        raise SuiteError(f"{path}: {error}; {what}") from None
    raw = document.value
    if not isinstance(raw, dict):
        document.add(ValidationIssue((), f"must be a mapping with the key methods, not {shown(raw)}"))
    elif "methods" not in raw:
        document.add(ValidationIssue((), "has no key methods; write your methods below it, as in a suite"))
    else:
        for key in raw.keys() - _OF_METHODS:
            what = f"is the suite's, which gives all but {' and '.join(sorted(_OF_METHODS))}; remove it"
            document.add(ValidationIssue((key,), what, "key"))
        for key in _OF_METHODS:
            if not isinstance(raw.get(key, {}), dict) or (key == "methods" and not raw[key]):
                document.add(ValidationIssue((key,), "must be a mapping with a line for each, as in a suite"))
    if lines := document.lines():
        raise SuiteError(*lines[:MAX_LINES])
    return document


def parse_suite(
    data: bytes,
    path: Path,
    registry: Registry,
    methods: Document | None = None,
    added: OwnMethods | None = None,
) -> Suite:
    """As `load_suite`, of a file's contents; others are included from its folder."""
    loader = _Loader(registry, path.parent, methods, added or OwnMethods({}, {}))
    name = loader.visit(data, path)
    lines = [line for document in loader.documents for line in document.lines()]
    if name is None or lines:
        more = [f"{path}: and {len(lines) - MAX_LINES} more mistakes"] if len(lines) > MAX_LINES else []
        raise SuiteError(*lines[:MAX_LINES], *more)
    return Suite(name, tuple(loader.experiments), loader.fetch)


class _Loader:
    def __init__(
        self,
        registry: Registry,
        top: Path,
        methods: Document | None,
        added: OwnMethods,
    ) -> None:
        self.documents: list[Document] = [] if methods is None else [methods]
        self.experiments: list[ResolvedExperiment] = []
        self.fetch = False
        self._registry = registry
        self._top = top
        self._methods = methods
        self._added = added
        self._seen: set[str] = set()
        self._named = 0

    def visit(self, data: bytes, path: Path) -> str | None:
        """Reads a file and its included files; returns its name, or None if it is not valid."""
        self._seen.add(os.path.realpath(path))
        document = parse_document(data, str(path))
        self.documents.append(document)
        context = Context(self._registry, path.parent, self._top)
        file, facts = _validate(document, context, self._methods, self._added.written)
        if facts is not None and isinstance(file, ExperimentFile):
            file, facts = _holding(file, facts, self._added.held)
        if file is None:
            return None
        self.fetch |= file.fetch
        if isinstance(file, IncludeFile):
            self._include(file, document, path)
        for experiment in (facts, *without_each_source(facts)) if facts is not None else ():
            called = experiment.file.name
            if any(other.file.name == called for other in self.experiments):
                document.add(
                    ValidationIssue(("name",), f"another experiment is called {shown(called)}, too; rename one")
                )
            self.experiments.append(experiment)
        return file.name

    def _include(self, joined: IncludeFile, document: Document, path: Path) -> None:
        for index, name in enumerate(joined.include):
            self._named += 1
            if self._named > MAX_FILES:
                document.add(
                    ValidationIssue(("include", index), f"is one file too many; a suite joins at most {MAX_FILES}")
                )
                return
            try:
                other = included(name, path.parent, self._top, self._seen)
                data = read_bytes(other)
            except UnreadableError as error:
                document.add(ValidationIssue(("include", index), f"{shown(name)} {error}"))
            else:
                before = len(self.experiments)
                self.visit(data, other)
                self.experiments[before:] = [_measured(experiment, joined) for experiment in self.experiments[before:]]


def _measured(experiment: ResolvedExperiment, joined: IncludeFile) -> ResolvedExperiment:
    """The experiment with the metric of the suite that includes it, unless it has its own or another task."""
    file, metric = experiment.file, joined.metric
    if metric is None or file.metric or file.published or experiment.task.kind not in metric.component.tasks:
        return experiment
    return replace(experiment, file=file.model_copy(update={"metric": metric}))


def _with_methods(raw: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """An experiment with other methods, without what it says of its own."""
    rest = {key: value for key, value in raw.items() if key != "published"} | {"methods": own["methods"]}
    if isinstance(compare := raw.get("compare"), dict):
        rest["compare"] = {key: value for key, value in compare.items() if key not in _OF_SUITES_METHODS}
    if own.get("requires") and isinstance(requires := raw.get("requires", {}), dict):
        rest["requires"] = requires | own["requires"]
    return rest


def _with_added(raw: dict[str, Any], added: Mapping[str, Any], document: Document) -> dict[str, Any]:
    """An experiment with further methods beside its own."""
    methods = raw.get("methods")
    if not isinstance(methods, dict):
        return raw
    for name in sorted(added.keys() & methods.keys()):
        document.add(
            ValidationIssue(("methods", name), "is a method of the suite; give your estimator another name", "key")
        )
    return raw | {"methods": {**methods, **added}}


def _holding(
    file: ExperimentFile, facts: ResolvedExperiment, held: Mapping[str, Any]
) -> tuple[ExperimentFile, ResolvedExperiment]:
    """The experiment whose methods of these names hold the estimators that they describe."""
    methods = dict(file.methods)
    for name, model in held.items():
        method = methods[name]
        methods[name] = method.model_copy(update={"scheme": method.scheme.holding(model)})
    file = file.model_copy(update={"methods": methods})
    return file, replace(facts, file=file)


def _validate(
    document: Document, context: Context, methods: Document | None = None, added: Mapping[str, Any] | None = None
) -> tuple[ExperimentFile | IncludeFile | None, ResolvedExperiment | None]:
    """The file, None if it is not valid, and the facts of an experiment."""
    raw = document.value
    if not isinstance(raw, dict):
        document.add(ValidationIssue((), f"must be a mapping with keys such as schema and name, not {shown(raw)}"))
        return None, None
    version = raw.get("schema")
    if isinstance(version, int) and version > SCHEMA:
        # Do not check another version's keys.
        document.add(
            ValidationIssue(("schema",), f"is {version}, but this msda-bench reads {SCHEMA}; install a newer one")
        )
        return None, None
    model = IncludeFile if "include" in raw else ExperimentFile
    if methods is not None and model is ExperimentFile:
        raw = _with_methods(raw, methods.value)
    if added and model is ExperimentFile:
        raw = _with_added(raw, added, document)
    result: ExperimentFile | IncludeFile | None = None
    mistakes: list[ValidationIssue] = []
    try:
        result = model.model_validate(raw, context=context)
    except ValidationError as error:
        mistakes += faults(error)
    facts, between = check_experiment(context.sound)
    mistakes += between
    if methods is not None:  # a parameter that the suite's own methods have
        mistakes = [fault for fault in mistakes if fault.loc[:2] != ("select", "space") or fault.where != "key"]
    for fault in mistakes:
        beside = model is IncludeFile and fault.where == "key" and fault.loc[0] in ExperimentFile.known()
        what = "is not allowed with include; give the experiment its own file" if beside else fault.what
        place = methods if methods is not None and fault.loc[:2] in methods.places else document
        place.add(fault._replace(what=what))
    return (None, None) if mistakes else (result, facts)


def suite_schema(registry: Registry) -> dict[str, Any]:
    """A JSON schema (2020-12) for editors and other tools; the loader checks more than it can express."""
    definitions: dict[str, Any] = {}
    for kind in KINDS:
        entries = [entry for entry in registry.entries if entry.kind == kind]
        for entry in entries:
            parameters = _parameters(entry)
            definitions |= parameters.pop("$defs", {})
            definitions[f"{kind}.{entry.name}"] = parameters
        definitions[kind] = _choice(kind, [entry.name for entry in entries])
    forms = []
    for model in (ExperimentFile, IncludeFile):
        schema = model.model_json_schema()
        definitions |= schema.pop("$defs", {})
        forms.append(schema)
    whole: dict[str, Any] = _linked({"anyOf": forms, "$defs": definitions})
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A suite of msda-bench", **whole}


def _parameters(entry: Entry) -> dict[str, Any]:
    try:
        with entry.plugin_errors("cannot describe its parameters"):
            schema = TypeAdapter(entry.cls).json_schema()
            fields: dict[str, FieldInfo] = entry.cls.__pydantic_fields__  # type: ignore[attr-defined]
            for field in fields.values():
                if isinstance(names := field.validation_alias, AliasChoices):
                    first, *others = map(str, names.choices)
                    schema["properties"] |= dict.fromkeys(others, schema["properties"][first])
    except BenchError as error:
        return {"title": entry.name, "description": str(error)}
    return {**schema, "title": entry.name, "description": f"{entry.cls.description()} ({entry.origin})"}


def _choice(kind: str, names: list[str]) -> dict[str, Any]:
    """Either a bare name, or a mapping of one name to its parameters."""
    forms = {name: {"anyOf": [{"$ref": f"#/$defs/{kind}.{name}"}, {"type": "null"}]} for name in names}
    mapping = {"type": "object", "properties": forms, "additionalProperties": False, "minProperties": 1}
    return {"anyOf": [{"enum": names}, {**mapping, "maxProperties": 1}]}


def _linked(schema: Any) -> Any:
    """The schema with every field that takes a component pointing to its kind."""
    if isinstance(schema, list):
        return [_linked(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    rest = {key: _linked(item) for key, item in schema.items() if key != "x-component"}
    return {"$ref": f"#/$defs/{schema['x-component']}", **rest} if "x-component" in schema else rest
