"""Published numbers of many papers, each with its source and certainty: one row of a .csv file each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from typing import Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter, ValidationError

from msda_bench.errors import SuiteError
from msda_bench.suite.mistakes import Fault, dotted, faults, shown

_Text = Annotated[str, Field(min_length=1, max_length=10_000)]
_STRICT = {"extra": "forbid", "allow_inf_nan": False}
_MOST = 50
"""The maximum number of reported mistakes of a file."""


@dataclass(frozen=True)
class PublishedNumber:
    """One published number, in percent.

    Attributes:
        backbone: the network, in the source's words.
        protocol: sources, test and choice of the epoch, in the source's words.
        method: its name in the source.
        target: the domain, by its name in datasets here, or "average".
        mean: in percent.
        spread: of the runs, in percent, or None.
        spread_is: the kind of spread, or None.
        runs: the number of runs in the mean, if known.
        source: the publication and the place in it.
        table: its number in the source.
        certainty: how certain it is that the number is the method's, in words.
    """

    __pydantic_config__ = _STRICT

    backbone: _Text
    protocol: _Text
    method: _Text
    target: _Text
    mean: Annotated[float, Field(ge=0, le=100)]
    spread: Annotated[float, Field(ge=0)] | None
    spread_is: Literal["standard error", "standard deviation", "not said"] | None
    runs: Annotated[int, Field(ge=2, lt=2**31)] | None
    source: _Text
    table: _Text
    certainty: _Text


@dataclass(frozen=True)
class PublishedNumbers:
    """Published numbers of one dataset, and which of them are comparable with a suite's.

    Attributes:
        name: its name in suites.
        numbers: in the file's order, which is that of the sources.
        backbones: the networks that match the suite's.
        protocols: the protocols that match the suite's.
        methods: for a method of the suite, its names in the sources.
    """

    __pydantic_config__ = _STRICT
    metric: ClassVar = "accuracy_percent"

    name: _Text
    numbers: Annotated[tuple[PublishedNumber, ...], Field(max_length=100_000)]
    backbones: tuple[_Text, ...] = ()
    protocols: tuple[_Text, ...] = ()
    methods: Mapping[_Text, tuple[_Text, ...]] = field(default_factory=dict)

    @property
    def targets(self) -> frozenset[str]:
        """The targets of all numbers, including "average"."""
        return frozenset(one.target for one in self.numbers)

    def names(self, method: str) -> tuple[str, ...]:
        """The names of a suite's method in the sources: those that the suite gives, or the same name."""
        return self.methods.get(method, (method,))

    def of(self, methods: Iterable[str]) -> PublishedNumbers:
        """The collection with only the numbers of these methods, as kept in a plan."""
        wanted = {name for method in methods for name in self.names(method)}
        return replace(self, numbers=tuple(one for one in self.numbers if one.method in wanted))


_COLUMNS = tuple(one.name for one in fields(PublishedNumber))


def parse_numbers(data: bytes, name: str, file: str) -> PublishedNumbers:
    """The numbers in the bytes of a .csv file.

    Raises:
        SuiteError: the file is invalid; a line for each mistake.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise SuiteError(f"{file}: cannot be read as a table of numbers ({error})") from None
    if not rows or any(tuple(row) != _COLUMNS for row in rows):
        raise SuiteError(f"{file}: must have rows of the columns {', '.join(_COLUMNS)}, and no others")
    plain = [{column: value or None for column, value in row.items()} for row in rows]
    try:
        numbers = tuple(TypeAdapter(list[PublishedNumber]).validate_python(plain))
    except ValidationError as error:
        raise SuiteError(*islice((_line(file, one) for one in faults(error, _keys)), _MOST)) from None
    _refuse_repeated(numbers, file)
    return PublishedNumbers(name, numbers)


def _line(file: str, fault: Fault) -> str:
    row, *column = fault.loc
    return f"{file}: row {int(row) + 1}: {dotted(tuple(column))}: {fault.what}"


def _keys(_: object) -> tuple[str, list[str]]:
    return "column", [*_COLUMNS]


def _refuse_repeated(numbers: Iterable[PublishedNumber], file: str) -> None:
    seen: set[tuple[str, ...]] = set()
    for index, one in enumerate(numbers, 1):
        key = (one.source, one.table, one.backbone, one.protocol, one.method, one.target)
        if key in seen:
            raise SuiteError(f"{file}: row {index}: repeats {shown(one.method)} at {shown(one.target)}; remove one")
        seen.add(key)
