"""The published numbers that a suite names, for `msda-bench verify`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

from pydantic import Field, GetJsonSchemaHandler, PrivateAttr, ValidationInfo, model_validator
from pydantic_core import CoreSchema

from msda_bench.errors import SuiteError
from msda_bench.suite.choice import context_of
from msda_bench.suite.files import UnreadableError, included
from msda_bench.suite.issues import Issues, Loc, ValidationIssue, hint, refusal, refuse_any, refused, shown_value
from msda_bench.suite.protocol import NonEmpty, SuitePart
from msda_bench.suite.published import ENDING, PublishedNumbers, find_table

_Words: TypeAlias = NonEmpty | list[NonEmpty]


class PublishedSpec(SuitePart):
    """A table by name, or by its file relative to the suite's, with its comparable networks and protocols.

    `methods` has the names of the suite's methods in the sources.
    """

    noun: ClassVar[str] = "key of published"
    table: NonEmpty
    backbone: _Words = Field(default_factory=list)
    protocol: _Words = Field(default_factory=list)
    methods: dict[str, _Words] = Field(default_factory=dict)
    _numbers: PublishedNumbers = PrivateAttr()

    @property
    def numbers(self) -> PublishedNumbers:
        """The table with the suite's choices."""
        return self._numbers

    @model_validator(mode="before")
    @classmethod
    def _named(cls, raw: Any) -> Any:
        if isinstance(raw, str):
            return {"table": raw}
        if not isinstance(raw, dict):
            what = f"must be the name of a table, or a {ENDING} file with one, or {{table: NAME, ...}}"
            raise refused(f"{what}, not {shown_value(raw)}")
        return raw

    @model_validator(mode="after")
    def _read(self, info: ValidationInfo) -> PublishedSpec:
        context, name = context_of(info), self.table
        try:
            if name.endswith(ENDING):
                name = str(included(name, context.folder, context.top))
            table = find_table(name)
        except UnreadableError as error:
            raise refused(f"{shown_value(self.table)} {error}", ("table",)) from None
        except SuiteError as error:
            raise refusal(*(ValidationIssue(("table",), line) for line in error.lines)) from None
        refuse_any(self._faults(table))
        self._numbers = replace(
            table,
            backbones=_listed(self.backbone),
            protocols=_listed(self.protocol),
            methods={name: _listed(words) for name, words in self.methods.items()},
        )
        return self

    def _faults(self, table: PublishedNumbers) -> Issues:
        choices: list[tuple[str, Loc, _Words]] = [
            ("backbone", ("backbone",), self.backbone),
            ("protocol", ("protocol",), self.protocol),
        ]
        choices += [("method", ("methods", name), words) for name, words in self.methods.items()]
        for column, loc, words in choices:
            known = dict.fromkeys(getattr(number, column) for number in table.numbers)
            known.pop(None, None)
            for word in _listed(words):
                if word not in known:
                    what = f"{shown_value(word)} is not a {column} of {table.name}{hint(word, known)}"
                    yield ValidationIssue(loc, what)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """A name, or a mapping."""
        return {"anyOf": [{"type": "string"}, handler.resolve_ref_schema(handler(core))]}


def _listed(words: str | list[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)
