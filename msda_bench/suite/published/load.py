"""Reads published tables and numbers: those of the package by name, and .yaml and .csv files."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from msda_bench.errors import SuiteError
from msda_bench.suite.files import UnreadableError, read_bytes
from msda_bench.suite.mistakes import PLAIN_NAME, Fault, Loc, faults, hint, refusal, refuse_any, shown
from msda_bench.suite.published.numbers import PublishedNumbers, parse_numbers
from msda_bench.suite.published.table import AVERAGE, Citation, PublishedCell, PublishedRow, PublishedTable
from msda_bench.suite.reader import parse_document

_TABLE, _NUMBERS = ".yaml", ".csv"
ENDINGS = (_TABLE, _NUMBERS)
Published: TypeAlias = PublishedTable | PublishedNumbers
OWN = " or ".join(ENDINGS)
_STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)
_Text = Annotated[str, Field(min_length=1)]
_MeanAndError = Annotated[list[float], Field(min_length=2, max_length=2)]


class _CitationFile(BaseModel):
    model_config = _STRICT
    authors: Annotated[list[_Text], Field(min_length=1)]
    title: _Text
    venue: _Text
    url: _Text


class _TableFile(BaseModel):
    """A table: rows of {target: [mean, standard error]}, and for each column the methods in bold, if any."""

    model_config = _STRICT
    schema_: Annotated[int, Field(alias="schema", ge=1, le=1)]
    name: Annotated[str, Field(pattern=PLAIN_NAME)]
    citation: _CitationFile
    where: _Text
    dataset: _Text
    metric: Literal["accuracy_percent"]
    runs: Annotated[int, Field(ge=2)]
    targets: Annotated[list[_Text], Field(min_length=1)]
    rows: Annotated[dict[_Text, dict[str, _MeanAndError]], Field(min_length=1)]
    references: list[str] = Field(default_factory=list)
    bold: dict[str, list[str]] = Field(default_factory=dict)

    @field_validator("targets")
    @classmethod
    def _named_once(cls, targets: list[str]) -> list[str]:
        for index, name in enumerate(targets):
            if name == AVERAGE or name in targets[:index]:
                what = "the column of means, which every row has" if name == AVERAGE else "named twice"
                raise refusal(Fault((index,), f"{shown(name)} is {what}; remove it"))
        return targets

    @model_validator(mode="after")
    def _consistent(self) -> _TableFile:
        refuse_any([*self._faults_of_rows(), *self._faults_of_names()])
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The targets, then the mean over them."""
        return (*self.targets, AVERAGE)

    def table(self) -> PublishedTable:
        """The table that the file describes."""
        cited = self.citation
        rows = (
            PublishedRow(method, method in self.references, tuple(self._cell(method, name) for name in self.columns))
            for method in self.rows
        )
        citation = Citation(tuple(cited.authors), cited.title, cited.venue, cited.url)
        return PublishedTable(self.name, citation, self.where, self.dataset, self.metric, self.runs, tuple(rows))

    def _cell(self, method: str, column: str) -> PublishedCell:
        mean, error = self.rows[method][column]
        return PublishedCell(None if column == AVERAGE else column, mean, error, method in self.bold.get(column, ()))

    def _faults_of_rows(self) -> Iterator[Fault]:
        for method, row in self.rows.items():
            for column in self.columns:
                if column not in row:
                    yield Fault(("rows", method), f"has no {shown(column)}", "key")
            for column, (mean, error) in row.items():
                loc: Loc = ("rows", method, column)
                if column not in self.columns:
                    yield Fault(loc, f"is not a column{hint(column, self.columns)}", "key")
                if not 0 <= mean <= 100:  # noqa: PLR2004 - percent
                    yield Fault((*loc, 0), f"must be between 0 and 100 percent, not {mean:g}")
                if not error > 0:
                    yield Fault((*loc, 1), f"must be a standard error above 0, not {error:g}")

    def _faults_of_names(self) -> Iterator[Fault]:
        ranked = [name for name in self.rows if name not in self.references]
        for index, name in enumerate(self.references):
            if name not in self.rows:
                yield Fault(("references", index), f"{shown(name)} is not in rows{hint(name, self.rows)}")
        for column, names in self.bold.items():
            if column not in self.columns:
                yield Fault(("bold", column), f"is not a column{hint(column, self.columns)}", "key")
            for index, name in enumerate(names):
                if name not in ranked:
                    what = "is a reference, which is not ranked" if name in self.references else "is not in rows"
                    yield Fault(("bold", column, index), f"{shown(name)} {what}{hint(name, ranked)}")


def known_tables() -> tuple[str, ...]:
    """Names of the tables that come with the package: complete ones, then collections of numbers."""
    files = sorted(entry.name for entry in resources.files(__package__).iterdir())
    return tuple(Path(name).stem for ending in ENDINGS for name in files if name.endswith(ending))


def find_table(name: str) -> Published:
    """The table that a user names on the command line: the package's, or any .yaml or .csv file.

    Raises:
        SuiteError: there is no such table, or it is invalid; a line for each mistake.
    """
    if not name.endswith(ENDINGS):
        return packaged(name)
    try:
        return parse_table(read_bytes(Path(name)), name)
    except UnreadableError as error:
        raise SuiteError(f"{name}: {error}") from None


def packaged(name: str) -> Published:
    """The table or collection that comes with the package under this name.

    Raises:
        SuiteError: there is none.
    """
    known = known_tables()
    if name not in known:
        raise SuiteError(f"unknown table {shown(name)}{hint(name, known)}; one of your own is a {OWN} file")
    files = resources.files(__package__)
    (file,) = (f"{name}{ending}" for ending in ENDINGS if files.joinpath(f"{name}{ending}").is_file())
    return parse_table(files.joinpath(file).read_bytes(), file)


def parse_table(data: bytes, name: str) -> Published:
    """The table or collection in the bytes of a file of this name.

    Raises:
        SuiteError: the file is invalid; a line for each mistake.
    """
    if name.endswith(_NUMBERS):
        return parse_numbers(data, Path(name).stem, name)
    document = parse_document(data, name)
    if not document.mistakes:
        try:
            return _TableFile.model_validate(document.value).table()
        except ValidationError as error:
            for fault in faults(error, _keys):
                document.add(fault)
    raise SuiteError(*document.lines())


def _keys(loc: Loc) -> tuple[str, list[str]]:
    model = _CitationFile if loc else _TableFile
    return "key", [field.alias or name for name, field in model.model_fields.items()]
