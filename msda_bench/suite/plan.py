"""A plan: what a suite asks for, cell by cell, apart from how each cell is trained.

It is kept in the result folder as plan.json, so that tables can be made, and gaps in them named, without the suite file
and without the plugins that trained the cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msda_bench.suite.published.table import PublishedTable

ORACLE = "oracle"
"""The target's test score as what settings are selected by: what nobody has who needs to select."""
CHANCE = "chance"
"""What a blind choice among the candidates expects; criteria are judged by it."""
LEAVE_ONE_OUT = "leave_one_source_out"
"""The mean test score over the sources, each in turn the target of the others, as what settings are selected by."""


@dataclass(frozen=True)
class Search:
    """How a method's settings are selected, for each target and seed.

    Attributes:
        by: the validator whose best score decides, `LEAVE_ONE_OUT` or `ORACLE`.
        candidates: what each sets, by path, as plain JSON values.
    """

    by: str
    candidates: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Method:
    """A row of the leaderboard.

    Attributes:
        name: the suite's name for it.
        reference: an oracle such as TAR, shown but not ranked or tested.
        recipe: one line: scheme, discrepancy, aggregator and mu.
        distributions: the distributions, with versions, that its components come from.
        search: how its settings are selected; None where they are as the suite says.
    """

    name: str
    reference: bool
    recipe: str
    distributions: tuple[str, ...]
    search: Search | None = None


@dataclass(frozen=True)
class Experiment:
    """One dataset with one protocol: one table.

    Attributes:
        name: unique in the plan.
        dataset: the dataset's name.
        task: classification or regression.
        targets: columns of the table, in order.
        methods: rows, in order.
        seeds: the runs of each pair of method and target.
        alpha: significance level of its comparisons.
        notes: one line each on what a reader must know, such as reduced data.
        baseline: the method without adaptation that the others are to gain over; None where the suite has no such one.
        published: a paper's table to verify against, whole, so that a result folder says by itself what it was held to.
        criteria: what settings may be selected by, the oracle last; nothing where none are selected.
        against: the method that the suite wants all others compared with; None for the default family of comparisons.
    """

    name: str
    dataset: str
    task: str
    targets: tuple[str, ...]
    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    alpha: float = 0.05
    notes: tuple[str, ...] = ()
    baseline: str | None = None
    published: PublishedTable | None = None
    criteria: tuple[str, ...] = ()
    against: str | None = None

    @property
    def references(self) -> frozenset[str]:
        """The methods that are shown but not ranked or tested."""
        return frozenset(method.name for method in self.methods if method.reference)


@dataclass(frozen=True)
class PlannedCell:
    """Where a cell stands in the tables; two methods with the same settings share a key.

    Attributes:
        experiment: its experiment.
        method: its method.
        target: the target of the table, which `left_out` stands in for where there is one.
        seed: its seed.
        key: the cell's.
        candidate: which of the method's candidates it is; None where there is nothing to select.
        left_out: the source that plays the target, learned from the other sources; None for the target itself.
    """

    experiment: str
    method: str
    target: str
    seed: int
    key: str
    candidate: int | None = None
    left_out: str | None = None


@dataclass(frozen=True)
class Plan:
    """All tables of a suite and the cells that fill them.

    Attributes:
        suite: the suite's name.
        experiments: one a table.
        cells: experiment by experiment, in table order.
    """

    suite: str
    experiments: tuple[Experiment, ...]
    cells: tuple[PlannedCell, ...]

    def __deepcopy__(self, memo: dict[int, Any]) -> Plan:
        """Itself, which never changes: pandas copies a frame's `attrs` with nearly every operation."""
        return self
