"""A published table as a suite chooses it."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema

from msda_bench.errors import SuiteError
from msda_bench.suite.choice import context_of
from msda_bench.suite.faults import Fault, refusal
from msda_bench.suite.mistakes import shown
from msda_bench.suite.published.load import table_of_suite
from msda_bench.suite.published.table import PublishedTable


def _table(raw: Any, info: ValidationInfo) -> PublishedTable | None:
    if raw is None:
        return None
    if not isinstance(raw, str):
        raise refusal([Fault((), f"must be the name of a table, or a .yaml file with one, not {shown(raw)}")])
    context = context_of(info)
    try:
        table = table_of_suite(raw, context.folder, context.top)
    except SuiteError as error:
        raise refusal(Fault((), line) for line in error.lines) from None
    dataset = context.sound.get("dataset")
    if dataset is not None and dataset.name != table.dataset:
        raise refusal([Fault((), f"{table.name} is of dataset {shown(table.dataset)}, not {shown(dataset.name)}")])
    return table


PublishedChoice: TypeAlias = Annotated[
    PublishedTable | None,
    PlainValidator(_table),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]}),
]
"""A name of the package's, or a .yaml file relative to the suite's; after validation the table itself."""
