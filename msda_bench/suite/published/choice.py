"""A suite's choice of published numbers: a table, or the numbers of a collection that are comparable with its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, ClassVar, TypeAlias

from pydantic import Field, PlainValidator, ValidationError, ValidationInfo, WithJsonSchema

from msda_bench.errors import SuiteError
from msda_bench.suite.choice import context_of
from msda_bench.suite.files import UnreadableError, included, read_bytes
from msda_bench.suite.mistakes import Fault, Loc, faults, hint, refusal, refuse_any, shown
from msda_bench.suite.protocol import SuitePart
from msda_bench.suite.published.load import ENDINGS, OWN, Published, packaged, parse_table
from msda_bench.suite.published.numbers import PublishedNumbers
from msda_bench.suite.published.table import PublishedTable

_Text = Annotated[str, Field(min_length=1)]
_Words: TypeAlias = _Text | list[_Text]


class PublishedSpec(SuitePart):
    """Selects the numbers of a collection that are comparable with the suite's, and names its methods there."""

    noun: ClassVar[str] = "key of published"
    table: _Text
    backbone: _Words = Field(default_factory=list)
    protocol: _Words = Field(default_factory=list)
    methods: dict[str, _Words] = Field(default_factory=dict)

    def chosen(self, numbers: PublishedNumbers) -> PublishedNumbers:
        """The collection with these choices.

        Raises:
            pydantic.ValidationError: the collection does not have a choice.
        """
        refuse_any(self._faults(numbers))
        methods = {name: _listed(words) for name, words in self.methods.items()}
        return replace(numbers, backbones=_listed(self.backbone), protocols=_listed(self.protocol), methods=methods)

    def _faults(self, numbers: PublishedNumbers) -> Iterator[Fault]:
        choices: list[tuple[Loc, str | list[str], str]] = [
            (("backbone",), self.backbone, "backbone"),
            (("protocol",), self.protocol, "protocol"),
        ]
        choices += [(("methods", name), words, "method") for name, words in self.methods.items()]
        for loc, words, column in choices:
            known = dict.fromkeys(getattr(one, column) for one in numbers.numbers)
            for word in _listed(words):
                if word not in known:
                    yield Fault(loc, f"{shown(word)} is not a {column} of {numbers.name}{hint(word, known)}")


def _listed(words: str | list[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _chosen(raw: Any, info: ValidationInfo) -> Published | None:
    if raw is None:
        return None
    if isinstance(raw, dict):
        spec = _spec(raw)
        table = _named(spec.table, info, ("table",))
        if isinstance(table, PublishedTable):
            raise refusal(Fault((), f"{table.name} is one table; write only its name, as published: {table.name}"))
        return spec.chosen(table)
    if not isinstance(raw, str):
        what = f"must be the name of a table, or a {OWN} file with one, or {{table: NAME, ...}}, not {shown(raw)}"
        raise refusal(Fault((), what))
    return _named(raw, info, ())


def _spec(raw: dict[str, Any]) -> PublishedSpec:
    try:
        return PublishedSpec.model_validate(raw)
    except ValidationError as error:
        raise refusal(*faults(error, lambda _: ("key of published", list(PublishedSpec.model_fields)))) from None


def _named(name: str, info: ValidationInfo, loc: Loc) -> Published:
    context = context_of(info)
    try:
        if name.endswith(ENDINGS):
            path = included(name, context.folder, context.top)
            table = parse_table(read_bytes(path), str(path))
        else:
            table = packaged(name)
    except UnreadableError as error:
        raise refusal(Fault(loc, f"{shown(name)} {error}")) from None
    except SuiteError as error:
        raise refusal(*(Fault(loc, line) for line in error.lines)) from None
    dataset = context.sound.get("dataset")
    if isinstance(table, PublishedTable) and dataset is not None and dataset.name != table.dataset:
        raise refusal(Fault(loc, f"{table.name} is of dataset {shown(table.dataset)}, not {shown(dataset.name)}"))
    return table


PublishedChoice: TypeAlias = Annotated[
    Published | None,
    PlainValidator(_chosen),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}, PublishedSpec.model_json_schema()]}),
]
"""A name of the package's, or a file relative to the suite's; after validation the table or the numbers themselves."""
