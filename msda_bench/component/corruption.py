"""A source whose labels are shuffled on request, as a check that methods notice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

if TYPE_CHECKING:
    from msda_bench.component.dataset import Dataset


def _corruption(raw: Any) -> dict[str, str] | None:
    source = raw.get("source") if isinstance(raw, Mapping) else None
    if raw is not None and not (isinstance(source, str) and raw == {"source": source, "labels": "shuffle"}):
        raise ValueError("must be {source: NAME, labels: shuffle}")
    return None if raw is None else dict(raw)


_CORRUPTION = {
    "type": "object",
    "properties": {"source": {"type": "string"}, "labels": {"const": "shuffle"}},
    "required": ["source", "labels"],
    "additionalProperties": False,
}
Corruption = Annotated[
    dict[str, str] | None,
    PlainValidator(_corruption),
    WithJsonSchema({"anyOf": [_CORRUPTION, {"type": "null"}]}),
]


def corrupted_source(data: Dataset) -> str | None:
    """The source whose labels are shuffled; None if a plugin uses that parameter for something else."""
    return data.corrupt["source"] if isinstance(data.corrupt, Mapping) else None
