"""What a table's file may say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from msda_bench.suite.faults import PLAIN_NAME, Fault, refusal
from msda_bench.suite.mistakes import Loc, hint, shown
from msda_bench.suite.optimizers import Settings
from msda_bench.suite.published.table import AVERAGE, Citation, PublishedCell, PublishedRow, PublishedTable

Text = Annotated[str, Field(min_length=1)]
Value = Annotated[list[float], Field(min_length=2, max_length=2)]
"""A mean and its standard error."""


class CitationFile(Settings):
    """Where the table is from."""

    authors: Annotated[list[Text], Field(min_length=1)]
    title: Text
    venue: Text
    url: Text


class TableFile(Settings):
    """A table: rows of {target: [mean, standard error]}, and for each column the methods in bold, if any."""

    schema_: Annotated[int, Field(alias="schema", ge=1, le=1)]
    name: Annotated[str, Field(pattern=PLAIN_NAME)]
    citation: CitationFile
    where: Text
    dataset: Text
    metric: Literal["accuracy_percent"]
    runs: Annotated[int, Field(ge=2)]
    targets: Annotated[list[Text], Field(min_length=1)]
    rows: Annotated[dict[Text, dict[str, Value]], Field(min_length=1)]
    references: list[str] = Field(default_factory=list)
    bold: dict[str, list[str]] = Field(default_factory=dict)

    @field_validator("targets")
    @classmethod
    def _named_once(cls, targets: list[str]) -> list[str]:
        for index, name in enumerate(targets):
            if name == AVERAGE or name in targets[:index]:
                what = "the column of means, which every row has" if name == AVERAGE else "named twice"
                raise refusal([Fault((index,), f"{shown(name)} is {what}; remove it")])
        return targets

    @model_validator(mode="after")
    def _consistent(self) -> TableFile:
        found = [*self._incomplete_rows(), *self._impossible_values(), *self._unknown_methods()]
        if found:
            raise refusal(found)
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The targets, then the mean over them."""
        return (*self.targets, AVERAGE)

    def table(self) -> PublishedTable:
        """The table that the file describes."""
        return PublishedTable(
            name=self.name,
            citation=Citation(
                tuple(self.citation.authors), self.citation.title, self.citation.venue, self.citation.url
            ),
            where=self.where,
            dataset=self.dataset,
            metric=self.metric,
            runs=self.runs,
            rows=tuple(self._row(method) for method in self.rows),
        )

    def _row(self, method: str) -> PublishedRow:
        return PublishedRow(method, method in self.references, tuple(self._cell(method, name) for name in self.columns))

    def _cell(self, method: str, column: str) -> PublishedCell:
        mean, error = self.rows[method][column]
        return PublishedCell(
            column=None if column == AVERAGE else column,
            mean=mean,
            standard_error=error,
            bold=method in self.bold.get(column, ()),
        )

    def _incomplete_rows(self) -> Iterator[Fault]:
        for method, row in self.rows.items():
            for column in self.columns:
                if column not in row:
                    yield Fault(("rows", method), f"has no {shown(column)}", "key")
            for column in row:
                if column not in self.columns:
                    yield Fault(("rows", method, column), f"is no column{hint(column, self.columns)}", "key")

    def _impossible_values(self) -> Iterator[Fault]:
        for method, row in self.rows.items():
            for column, (mean, error) in row.items():
                loc: Loc = ("rows", method, column)
                if not 0 <= mean <= 100:  # noqa: PLR2004 - percent
                    yield Fault((*loc, 0), f"must be between 0 and 100 percent, not {mean:g}")
                if not error > 0:
                    yield Fault((*loc, 1), f"must be a standard error above 0, not {error:g}")

    def _unknown_methods(self) -> Iterator[Fault]:
        for index, name in enumerate(self.references):
            if name not in self.rows:
                yield Fault(("references", index), f"{shown(name)} is not in rows{hint(name, self.rows)}")
        for column, names in self.bold.items():
            if column not in self.columns:
                yield Fault(("bold", column), f"is no column{hint(column, self.columns)}", "key")
            for index, name in enumerate(names):
                if name not in self.rows or name in self.references:
                    what = "is a reference, which is not ranked" if name in self.references else "is not in rows"
                    yield Fault(("bold", column, index), f"{shown(name)} {what}{hint(name, self._ranked)}")

    @property
    def _ranked(self) -> list[str]:
        return [name for name in self.rows if name not in self.references]
