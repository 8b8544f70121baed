"""The keys that a suite may have: those at one place, and the JSON schema of all, with the installed components."""

from __future__ import annotations

from typing import Any, get_args, get_origin

from pydantic import AliasChoices, TypeAdapter
from pydantic.fields import FieldInfo

from msda_bench.errors import BenchError
from msda_bench.plugins import KINDS, Entry, Registry
from msda_bench.suite.mistakes import Loc
from msda_bench.suite.protocol import SuitePart
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


def keys_at(model: type[SuitePart], loc: Loc) -> tuple[str, list[str]]:
    """The noun for the keys of the mapping at a location, and the valid keys."""
    kind: Any = model
    for part in loc:
        kind = _below(kind, part)
    return (kind.noun, list(_fields(kind))) if _is_model(kind) else ("key", [])


def _below(kind: Any, part: str | int) -> Any:
    if _is_model(kind):
        annotation = _fields(kind).get(str(part))
        if get_origin(annotation) is dict:
            return annotation
        return next((choice for choice in get_args(annotation) if _is_model(choice)), annotation)
    return get_args(kind)[1] if get_origin(kind) is dict else None


def _fields(model: type[SuitePart]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, SuitePart)
