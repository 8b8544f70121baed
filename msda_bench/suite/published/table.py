"""A paper's table of results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AVERAGE = "average"
"""What a table's file calls the column of means over targets."""


@dataclass(frozen=True)
class Citation:
    """Where a table is from.

    Attributes:
        authors: in order.
        title: of the paper.
        venue: where and when it appeared.
        url: where it can be read.
    """

    authors: tuple[str, ...]
    title: str
    venue: str
    url: str

    def __str__(self) -> str:
        return f"{', '.join(self.authors)}. {self.title}. {self.venue}. {self.url}"


@dataclass(frozen=True)
class PublishedCell:
    """A number of the table.

    Attributes:
        column: the target; None for the mean over targets.
        mean: over the runs.
        standard_error: of the mean.
        bold: whether the table has it in bold.
    """

    column: str | None
    mean: float
    standard_error: float
    bold: bool


@dataclass(frozen=True)
class PublishedRow:
    """A method's numbers.

    Attributes:
        method: its name.
        reference: an oracle, not ranked.
        cells: one a target, in the table's order, then the mean over targets.
    """

    method: str
    reference: bool
    cells: tuple[PublishedCell, ...]


@dataclass(frozen=True)
class PublishedTable:
    """A table of means and standard errors, methods by targets.

    Attributes:
        name: how a suite names it.
        citation: where it is from.
        where: which one of the paper's it is.
        dataset: the dataset's name here.
        metric: what the numbers are.
        runs: how many a mean is over.
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
        """The columns but for the mean over targets."""
        return tuple(cell.column for cell in self.rows[0].cells if cell.column is not None)
