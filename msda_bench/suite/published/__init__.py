"""Published numbers, each with its source and certainty: a row of a .csv file, of the package or of a user."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter, ValidationError

from msda_bench.errors import SuiteError
from msda_bench.suite.files import read_bytes
from msda_bench.suite.issues import dotted, hint, issues_of, shown_value

AVERAGE = "average"
"""The target of means over targets."""
ENDING = ".csv"
_Text = Annotated[str, Field(min_length=1, max_length=10_000)]
STRICT = {"extra": "forbid", "allow_inf_nan": False}
_MOST = 50
"""The maximum number of reported mistakes of a file."""


@dataclass(frozen=True, kw_only=True)
class PublishedNumber:
    """One published number, in percent.

    Attributes:
        method: its name in the source.
        target: the domain, by its name in datasets here, or "average".
        mean: in percent.
        source: the publication.
        table: the place in it.
        certainty: how certain it is that the number is the method's, in words.
        backbone: the network, in the source's words; None if that of every suite that names the table is meant.
        protocol: sources, test and choice of the epoch, in the source's words; None as for `backbone`.
        spread: of the runs, in percent, or None.
        spread_is: the kind of spread, or None.
        runs: the number of runs in the mean, if known.
        bold: whether the source prints it in bold, if its bold numbers are known.
    """

    __pydantic_config__ = STRICT

    method: _Text
    target: _Text
    mean: Annotated[float, Field(ge=0, le=100)]
    source: _Text
    table: _Text
    certainty: _Text
    backbone: _Text | None = None
    protocol: _Text | None = None
    spread: Annotated[float, Field(ge=0)] | None = None
    spread_is: Literal["standard error", "standard deviation", "not said"] | None = None
    runs: Annotated[int, Field(ge=2, lt=2**31)] | None = None
    bold: bool | None = None


_REQUIRED = [column.name for column in fields(PublishedNumber) if column.default is MISSING]
_COLUMNS = [column.name for column in fields(PublishedNumber)]


@dataclass(frozen=True)
class PublishedNumbers:
    """A table of published numbers, and which of them are comparable with a suite's.

    Attributes:
        name: its name in suites.
        numbers: in the file's order.
        backbones: the networks that match the suite's.
        protocols: the protocols that match the suite's.
        methods: for a method of the suite, its names in the sources.
    """

    metric: ClassVar = "accuracy_percent"

    name: _Text
    numbers: Annotated[tuple[PublishedNumber, ...], Field(max_length=100_000)]
    backbones: tuple[_Text, ...] = ()
    protocols: tuple[_Text, ...] = ()
    methods: Mapping[_Text, tuple[_Text, ...]] = field(default_factory=dict)

    @property
    def targets(self) -> frozenset[str]:
        """The targets of all numbers, including "average"."""
        return frozenset(number.target for number in self.numbers)

    def names(self, method: str) -> tuple[str, ...]:
        """The names of a suite's method in the sources: those that the suite gives, or the same name."""
        return self.methods.get(method, (method,))

    def of(self, methods: Iterable[str]) -> PublishedNumbers:
        """The table with only the numbers of these methods, as kept in a plan."""
        wanted = {name for method in methods for name in self.names(method)}
        return replace(self, numbers=tuple(number for number in self.numbers if number.method in wanted))


def known_tables() -> tuple[str, ...]:
    """Names of the tables that come with the package."""
    names = sorted(entry.name for entry in resources.files(__package__).iterdir())
    return tuple(Path(name).stem for name in names if name.endswith(ENDING))


def find_table(name: str) -> PublishedNumbers:
    """The numbers that a user names: a table of the package, or any .csv file.

    Optional columns may be empty or missing.

    Raises:
        SuiteError: there is no such table, or it is invalid; a line for each mistake.
        UnreadableError: the file cannot be read.
    """
    known = known_tables()
    if name.endswith(ENDING):
        data = read_bytes(Path(name))
    elif name in known:
        data = resources.files(__package__).joinpath(f"{name}{ENDING}").read_bytes()
    else:
        raise SuiteError(f"unknown table {shown_value(name)}{hint(name, known)}; one of your own is a {ENDING} file")
    try:
        text = io.StringIO(data.decode("utf-8-sig"), newline="")
        rows = list(csv.DictReader(text, restkey="after the last column", strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise SuiteError(f"{name}: cannot be read as a table of numbers ({error})") from None
    if not rows or not rows[0].keys() >= set(_REQUIRED):
        raise SuiteError(f"{name}: must have rows of the columns {', '.join(_REQUIRED)}")
    plain = [{column: value for column, value in row.items() if value} for row in rows]
    try:
        numbers = tuple(TypeAdapter(list[PublishedNumber]).validate_python(plain))
    except ValidationError as error:
        wrong = list(issues_of(error, "column", _COLUMNS))[:_MOST]
        lines = (f"{name}: row {int(fault.loc[0]) + 1}: {dotted(fault.loc[1:])}: {fault.what}" for fault in wrong)
        raise SuiteError(*lines) from None
    _refuse_fractions(name, numbers)
    _refuse_repeated(name, numbers)
    return PublishedNumbers(Path(name).stem, numbers)


def _refuse_fractions(name: str, numbers: Iterable[PublishedNumber]) -> None:
    """Refuses numbers that are hardly percent, such as 0.83 beside 83.0."""
    lines = [
        f"{name}: row {at}: mean: {one.mean:g} looks like a fraction, but numbers are percent; write {100 * one.mean:g}"
        for at, one in enumerate(numbers, 1)
        if 0 < one.mean <= 1
    ]
    if lines:
        raise SuiteError(*lines[:_MOST])


def _refuse_repeated(name: str, numbers: Iterable[PublishedNumber]) -> None:
    seen: set[tuple[str | None, ...]] = set()
    for at, one in enumerate(numbers, 1):
        key = (one.source, one.table, one.backbone, one.protocol, one.method, one.target)
        if key in seen:
            raise SuiteError(
                f"{name}: row {at}: repeats {shown_value(one.method)} at {shown_value(one.target)}; remove one"
            )
        seen.add(key)
