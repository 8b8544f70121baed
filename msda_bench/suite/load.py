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

from msda_bench.component.base import PLAIN_NAME
from msda_bench.errors import BenchError, SuiteError
from msda_bench.plugins import KINDS, Entry, Registry
from msda_bench.suite.check import check_experiment
from msda_bench.suite.choice import Context
from msda_bench.suite.described import OwnMethods
from msda_bench.suite.files import UnreadableError, find_suite, included, names, read_bytes
from msda_bench.suite.issues import PLAIN_WORDS, Issues, ValidationIssue, issues_of, shown_value
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
    given: str | Path,
    registry: Registry,
    methods: Path | None = None,
    added: OwnMethods | None = None,
) -> Suite:
    """Loads a suite from a file, or by the name of one that comes with msda-bench, with all included files.

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
        raise SuiteError(
            f"{methods}: rename it: the result folder would be {shown_value(name)}, but may be {PLAIN_WORDS}"
        )
    return replace(suite, name=name)


def _own_methods(path: Path) -> Document:
    """Reads a file that replaces a suite's methods; a SuiteError if it lacks `methods` or has keys of a suite."""
    try:
        document = parse_document(read_bytes(path), str(path))
    except UnreadableError as error:
        what = "--methods names a file with methods; --only method=A|B trains a part of the suite"
        raise SuiteError(f"{path}: {error}; {what}") from None
    for issue in _unlike_methods(document.value):
        document.add(issue)
    if lines := document.lines():
        raise SuiteError(*lines[:MAX_LINES])
    return document


def _unlike_methods(raw: Any) -> Issues:
    """The mistakes in the keys of a file that replaces a suite's methods."""
    if not isinstance(raw, dict):
        yield ValidationIssue((), f"must be a mapping with the key methods, not {shown_value(raw)}")
        return
    if "methods" not in raw:
        yield ValidationIssue((), "has no key methods; write your methods below it, as in a suite")
        return
    for key in raw.keys() - _OF_METHODS:
        what = f"is the suite's, which gives all but {' and '.join(sorted(_OF_METHODS))}; remove it"
        yield ValidationIssue((key,), what, "key")
    for key in _OF_METHODS & raw.keys():
        if not isinstance(raw[key], dict) or (key == "methods" and not raw[key]):
            yield ValidationIssue((key,), "must be a mapping with a line for each, as in a suite")


def parse_suite(
    data: bytes,
    path: Path,
    registry: Registry,
    methods: Document | None = None,
    added: OwnMethods | None = None,
) -> Suite:
    """As `load_suite`, from a file's contents; others are included from its folder."""
    loader = _Loader(registry, path.parent, methods, added or OwnMethods({}, {}))
    name = loader.visit(data, path)
    lines = [line for document in loader.documents for line in document.lines()]
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"{path}: and {len(lines) - MAX_LINES} more mistakes"]
    if name is None or lines:
        raise SuiteError(*lines)
    return Suite(name, tuple(loader.experiments), loader.fetch)


class _Loader:
    def __init__(self, registry: Registry, top: Path, methods: Document | None, added: OwnMethods) -> None:
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
        file, experiment = self._validate(document, Context(self._registry, path.parent, self._top))
        if file is None:
            return None
        self.fetch |= file.fetch
        if isinstance(file, IncludeFile):
            self._include(file, document, path)
        if experiment is not None:
            experiment = _holding(experiment, self._added.held)
            for one in (experiment, *without_each_source(experiment)):
                self._add(one, document)
        return file.name

    def _add(self, experiment: ResolvedExperiment, document: Document) -> None:
        name = experiment.file.name
        if any(other.file.name == name for other in self.experiments):
            what = f"another experiment is called {shown_value(name)}, too; rename one"
            document.add(ValidationIssue(("name",), what))
        self.experiments.append(experiment)

    def _include(self, joined: IncludeFile, document: Document, path: Path) -> None:
        for index, name in enumerate(joined.include):
            loc = ("include", index)
            self._named += 1
            if self._named > MAX_FILES:
                what = f"is one file too many; a suite joins at most {MAX_FILES}"
                document.add(ValidationIssue(loc, what))
                return
            try:
                other = included(name, path.parent, self._top, self._seen)
                data = read_bytes(other)
            except UnreadableError as error:
                document.add(ValidationIssue(loc, f"{shown_value(name)} {error}"))
                continue
            before = len(self.experiments)
            self.visit(data, other)
            self.experiments[before:] = [_measured(experiment, joined) for experiment in self.experiments[before:]]

    def _validate(
        self, document: Document, context: Context
    ) -> tuple[ExperimentFile | IncludeFile | None, ResolvedExperiment | None]:
        """The file, None if it is not valid, and its experiment if it is one."""
        raw, own = document.value, self._methods
        refused = _other_layout(raw)
        if refused is not None:
            document.add(refused)
            return None, None
        model: type[ExperimentFile | IncludeFile] = IncludeFile if "include" in raw else ExperimentFile
        if own is not None and model is ExperimentFile:
            raw = _with_methods(raw, own.value)
        if self._added.written and model is ExperimentFile:
            raw = _with_added(raw, self._added.written, document)
        file: ExperimentFile | IncludeFile | None = None
        issues: list[ValidationIssue] = []
        try:
            file = model.model_validate(raw, context=context)
        except ValidationError as error:
            issues += issues_of(error)
        experiment, between = check_experiment(context.sound)
        issues += between
        if own is not None:  # the space may name parameters of the suite's own methods
            issues = [issue for issue in issues if issue.loc[:2] != ("select", "space") or issue.where != "key"]
        for issue in issues:
            document_of = own if own is not None and issue.loc[:2] in own.places else document
            document_of.add(_beside_include(issue) if model is IncludeFile else issue)
        return (None, None) if issues else (file, experiment)


def _other_layout(raw: Any) -> ValidationIssue | None:
    """Why a file cannot be validated as a suite; None if it can."""
    if not isinstance(raw, dict):
        return ValidationIssue((), f"must be a mapping with keys such as schema and name, not {shown_value(raw)}")
    version = raw.get("schema")
    if isinstance(version, int) and version > SCHEMA:
        # Another version's keys are not checked.
        what = f"is {version}, but this msda-bench reads {SCHEMA}; install a newer one"
        return ValidationIssue(("schema",), what)
    return None


def _beside_include(issue: ValidationIssue) -> ValidationIssue:
    """The issue, in other words for a key of an experiment in a file that includes others."""
    if issue.where != "key" or issue.loc[0] not in ExperimentFile.known():
        return issue
    return issue._replace(what="is not allowed with include; give the experiment its own file")


def _measured(experiment: ResolvedExperiment, joined: IncludeFile) -> ResolvedExperiment:
    """The experiment with the metric of the suite that includes it, unless it has its own or another task."""
    file, metric = experiment.file, joined.metric
    if metric is None or file.metric or file.published or experiment.task.kind not in metric.component.tasks:
        return experiment
    return replace(experiment, file=file.model_copy(update={"metric": metric}))


def _with_methods(raw: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """An experiment with other methods, without the keys that are about its own."""
    changed = {**raw, "methods": own["methods"]}
    changed.pop("published", None)
    compare, requires = raw.get("compare"), raw.get("requires", {})
    if isinstance(compare, dict):
        changed["compare"] = {key: value for key, value in compare.items() if key not in _OF_SUITES_METHODS}
    if own.get("requires") and isinstance(requires, dict):
        changed["requires"] = requires | own["requires"]
    return changed


def _with_added(raw: dict[str, Any], added: Mapping[str, Any], document: Document) -> dict[str, Any]:
    """An experiment with further methods beside its own."""
    methods = raw.get("methods")
    if not isinstance(methods, dict):
        return raw
    for name in sorted(added.keys() & methods.keys()):
        what = "is a method of the suite; give your estimator another name"
        document.add(ValidationIssue(("methods", name), what, "key"))
    return raw | {"methods": {**methods, **added}}


def _holding(experiment: ResolvedExperiment, held: Mapping[str, Any]) -> ResolvedExperiment:
    """The experiment with these estimators in the methods of the same names."""
    methods = dict(experiment.methods)
    for name, model in held.items():
        scheme = methods[name].scheme.holding(model)
        methods[name] = methods[name].model_copy(update={"scheme": scheme})
    return replace(experiment, file=experiment.file.model_copy(update={"methods": methods}))


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
    linked = {key: _linked(item) for key, item in schema.items() if key != "x-component"}
    if "x-component" in schema:
        linked["$ref"] = f"#/$defs/{schema['x-component']}"
    return linked
