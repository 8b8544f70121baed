"""A paper's table of results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AVERAGE = "average"
"""The name of the column of means over targets in a table's file."""


@dataclass(frozen=True)
class Citation:
    """The source of a table; the venue includes the year."""

    authors: tuple[str, ...]
    title: str
    venue: str
    url: str

    def __str__(self) -> str:
        return f"{', '.join(self.authors)}. {self.title}. {self.venue}. {self.url}"


@dataclass(frozen=True)
class PublishedCell:
    """A mean over the runs and its standard error; the column is a target, or None for the mean over targets."""

    column: str | None
    mean: float
    standard_error: float
    bold: bool


@dataclass(frozen=True)
class PublishedRow:
    """A method's cells, in the order of the table's columns; a reference is an oracle, not ranked."""

    method: str
    reference: bool
    cells: tuple[PublishedCell, ...]


@dataclass(frozen=True)
class PublishedTable:
    """A table of means and standard errors, methods by targets.

    Attributes:
        name: its name in suites.
        citation: its source.
        where: its number in the paper.
        dataset: the dataset's name here.
        metric: the metric of the numbers.
        runs: the number of runs in a mean.
        rows: one a method.
    """

    name: str
    citation: Citation
    where: str
    dataset: str
    metric: Literal["accuracy_percent"]
    runs: int
    rows: tuple[PublishedRow, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns except the mean over targets."""
        return tuple(cell.column for cell in self.rows[0].cells if cell.column is not None)
