"""The JSON schema of a suite, with the installed components."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, TypeAdapter
from pydantic.fields import FieldInfo

from msda_bench.errors import BenchError
from msda_bench.plugins import KINDS, Entry, Registry
from msda_bench.suite.spec import ExperimentFile, IncludeFile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


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
    return {"$schema": _DIALECT, "title": "A suite of msda-bench", **whole}


def _parameters(entry: Entry) -> dict[str, Any]:
    try:
        with entry.blamed("cannot describe its parameters"):
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
