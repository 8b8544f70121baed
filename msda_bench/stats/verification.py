"""What there is to say of our runs beside a published table, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from msda_bench.stats.analysis import Analysis, Entry
from msda_bench.stats.method_order import MethodOrder
from msda_bench.stats.scores import Column
from msda_bench.stats.standardised import Gap
from msda_bench.suite.plan import Experiment
from msda_bench.suite.published.table import PublishedCell, PublishedTable

TOLERANCE = 0.5
"""Percentage points that a method's mean over the targets may be off."""
_ROUNDING = 1e-9

VerificationStatus: TypeAlias = Literal["agrees", "differs", "incomplete"]


@dataclass(frozen=True)
class CheckedCell:
    """A published number and ours.

    Attributes:
        method: of both.
        reference: whether the table has it as an oracle.
        published: theirs.
        entry: ours; None where the suite has no such method or target.
        gap: between the means; None without a run of ours.
    """

    method: str
    reference: bool
    published: PublishedCell
    entry: Entry | None
    gap: Gap | None

    @property
    def is_within(self) -> bool:
        """Whether our mean is within `TOLERANCE` of theirs."""
        return self.gap is not None and abs(self.gap.difference) <= TOLERANCE + _ROUNDING


@dataclass(frozen=True)
class BoldSets:
    """The bold methods of one column.

    Attributes:
        column: which.
        published: theirs.
        ours: by the paper's rule among the methods that the table has; None where that cannot be told.
    """

    column: Column
    published: tuple[str, ...]
    ours: tuple[str, ...] | None

    @property
    def agree(self) -> bool | None:
        """Whether they are the same; None where that cannot be told."""
        return None if self.ours is None else set(self.published) == set(self.ours)


@dataclass(frozen=True)
class Verification:
    """An experiment beside its published table.

    Attributes:
        table: what was published.
        analysis: of the methods and targets that both have.
        cells: column by column as in the table, the mean over targets last.
        bold: a column each, of those in which the table marks any.
        order: of the methods by their means over the targets.
        absent_methods: published, but not in the suite.
        absent_targets: likewise.
        extra_methods: in the suite, but not published.
        extra_targets: likewise.
    """

    table: PublishedTable
    analysis: Analysis
    cells: tuple[CheckedCell, ...]
    bold: tuple[BoldSets, ...]
    order: MethodOrder
    absent_methods: tuple[str, ...]
    absent_targets: tuple[str, ...]
    extra_methods: tuple[str, ...]
    extra_targets: tuple[str, ...]

    @property
    def experiment(self) -> Experiment:
        """The experiment, without what was not published."""
        return self.analysis.scores.experiment

    @property
    def of_targets(self) -> tuple[CheckedCell, ...]:
        """The cells but for the means over targets."""
        return tuple(cell for cell in self.cells if cell.published.column is not None)

    @property
    def averages(self) -> tuple[CheckedCell, ...]:
        """The means over targets."""
        return tuple(cell for cell in self.cells if cell.published.column is None)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Of the targets' cells that have a run of ours."""
        return tuple(cell.gap for cell in self.of_targets if cell.gap is not None)

    @property
    def n_near(self) -> int:
        """Of these, how many are no more than noise."""
        return sum(gap.is_near for gap in self.gaps)

    @property
    def expected_far(self) -> float:
        """How many would be more by chance if all means were equal."""
        return sum(gap.chance for gap in self.gaps)

    @property
    def n_not_ok(self) -> int:
        """Planned runs of the experiment that are not ok."""
        return sum(status != "ok" for status in self.analysis.scores.statuses.values())

    @property
    def status(self) -> VerificationStatus:
        """The verdict.

        incomplete: a run is not ok, or a published method or target is not in the suite. Else differs: a method's mean
        over the targets is more than `TOLERANCE` off, or two methods are in another order than published by more than
        noise. Else agrees. Bold sets and single cells are told and not judged: of equal methods and means, some would
        differ by chance.
        """
        if self.n_not_ok or self.absent_methods or self.absent_targets:
            return "incomplete"
        within = all(cell.is_within for cell in self.averages)
        return "agrees" if within and not self.order.contradictions else "differs"
