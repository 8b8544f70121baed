"""Compares our runs with a published table: standardised differences of the numbers, and the order of methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple, TypeAlias

import pandas as pd

from msda_bench.errors import BenchError
from msda_bench.results.cited import Cited, as_chosen, cited
from msda_bench.results.frame import AVERAGE, experiments
from msda_bench.results.leaderboard import leaderboard
from msda_bench.results.scores import grids
from msda_bench.results.select import select
from msda_bench.results.standardised import FAR, standardised
from msda_bench.results.summary import summarize
from msda_bench.suite.plan import Experiment
from msda_bench.suite.published.load import OWN, Published, find_table, known_tables
from msda_bench.suite.published.table import PublishedTable

COLUMNS = (
    *("suite", "experiment", "dataset", "table", "target", "method", "reference", "metric"),
    *("published_mean", "published_standard_error", "published_runs", "published_bold"),
    *("mean", "standard_error", "n_ok", "n_planned", "bold_paper"),
    *("difference", "standardised_difference", "degrees_of_freedom", "within_2_se"),
)
"""The columns of verify.csv, explained in docs/results.md."""
VERIFIED = "verify.csv"
TOLERANCE = 0.5
"""The tolerance for a method's mean over the targets, in percentage points."""
_ROUNDING = 1e-9

Status: TypeAlias = Literal["agrees", "differs", "incomplete"]


def verify(runs: pd.DataFrame, table: str | None = None) -> pd.DataFrame:
    """Compares runs with the published tables that their suite names.

    Args:
        runs: a frame from `load_results`.
        table: a published table, or a .yaml or .csv file with one, instead of the suite's own.

    Returns:
        One row for each number of a table, column by column, the mean over targets last, in the columns of verify.csv
        (docs/results.md). For a collection of numbers, one row for each number of a method and target of the runs, with
        its publication and certainty. `difference` is ours - published in percentage points, and
        `standardised_difference` is this difference divided by its standard error.

    Raises:
        BenchError: there is no such table, the suite names none, or the table is of another dataset or metric.
    """
    return verified_frame(verifications(runs, table))


def verified_frame(found: Sequence[Verification | Cited]) -> pd.DataFrame:
    """The rows of `verify` of several experiments."""
    return pd.concat([one.cells for one in found], ignore_index=True)


class BoldSets(NamedTuple):
    """The bold methods of one column; `ours` by the paper's rule, or None if a method has too few runs."""

    target: str
    published: tuple[str, ...]
    ours: tuple[str, ...] | None

    @property
    def agree(self) -> bool | None:
        """Whether both sets are equal; None if ours is unknown."""
        return None if self.ours is None else set(self.published) == set(self.ours)


@dataclass(frozen=True)
class Verification:
    """An experiment compared with its published table.

    Attributes:
        experiment: the plan's.
        table: the published table.
        runs: the runs of methods and targets that are also published; the table decides which methods are references.
        cells: the rows of `verify`.
        pairs: the pairs of methods with common seeds and different published averages: `first, second` (`first` has the
            better published average), `published` and `ours` (mean of first - mean of second), and
            `standardised_difference, degrees_of_freedom, within_2_se` (of ours - published).
        absent: the `methods` and `targets` that are published, but missing from the suite.
        extra: the `methods` and `targets` of the suite that are not published.
    """

    experiment: Experiment
    table: PublishedTable
    runs: pd.DataFrame
    cells: pd.DataFrame
    pairs: pd.DataFrame
    absent: Mapping[str, list[str]]
    extra: Mapping[str, list[str]]

    @property
    def of_targets(self) -> pd.DataFrame:
        """The cells without the means over targets."""
        return self.cells[self.cells["target"] != AVERAGE]

    @property
    def averages(self) -> pd.DataFrame:
        """The means over targets; `within` reports whether ours differs by at most `TOLERANCE`."""
        found = self.cells[self.cells["target"] == AVERAGE]
        return found.assign(within=found["difference"].abs() <= TOLERANCE + _ROUNDING)

    @property
    def expected_far(self) -> float:
        """The number of targets' cells expected beyond `FAR` by chance, if all true means are equal."""
        from scipy.special import stdtr

        return float(2 * stdtr(self.of_targets["degrees_of_freedom"].dropna(), -FAR).sum())

    @property
    def bold(self) -> tuple[BoldSets, ...]:
        """The bold sets of the columns in which the table marks any."""
        ranked = self.cells[~self.cells["reference"]]
        return tuple(
            BoldSets(
                str(target),
                tuple(own.loc[own["published_bold"], "method"]),
                None if own["bold_paper"].isna().any() else tuple(own.loc[own["bold_paper"].astype(bool), "method"]),
            )
            for target, own in ranked.groupby("target", sort=False)
            if own["published_bold"].any()
        )

    def order(self, column: Literal["mean", "published_mean"]) -> list[str]:
        """The methods without references, ordered by their mean over the targets, the best first."""
        ranked = self.averages[~self.averages["reference"]].dropna(subset=column)
        return list(ranked.sort_values(column, ascending=False, kind="stable")["method"])

    @property
    def inversions(self) -> pd.DataFrame:
        """The pairs whose order is the reverse of the published one."""
        return self.pairs[self.pairs["ours"] < 0]

    @property
    def n_not_ok(self) -> int:
        """Runs that are not ok."""
        return int((self.runs["status"] != "ok").sum())

    @property
    def status(self) -> Status:
        """The conclusion.

        incomplete: a run is not ok, or a published method or target is missing from the suite. differs: a method's mean
        over the targets differs by more than `TOLERANCE`, or the order of two methods is reversed by more than noise.
        agrees: otherwise. Bold sets and single cells are shown but not judged, since some differ by chance even if all
        true means are equal.
        """
        if self.n_not_ok or any(self.absent.values()):
            return "incomplete"
        agrees = self.averages["within"].all() and self.inversions["within_2_se"].all()
        return "agrees" if agrees else "differs"


def verifications(runs: pd.DataFrame, table: str | None = None) -> tuple[Verification | Cited, ...]:
    """Compares each experiment with its published table, if it has one; see `verify`."""
    chosen, published = select(runs), _tables(runs, table)
    return tuple(
        _compare(experiment, published[experiment.name], rows)
        for experiment, rows in experiments(chosen)
        if experiment.name in published
    )


def _tables(runs: pd.DataFrame, name: str | None) -> dict[str, Published]:
    """The table of each experiment that has one."""
    plan, folder = runs.attrs["plan"], runs.attrs.get("folder") or "these runs"
    if name is not None:
        table = find_table(name)
        chosen = {one.name: as_chosen(table, one) for one in plan.experiments if _suits(table, one)}
        if not chosen:
            of = table.dataset if isinstance(table, PublishedTable) else "any of the targets"
            raise BenchError(f"{folder}: has no results on {of}, the subject of table {table.name}")
        return chosen
    found = {one.name: one.published for one in plan.experiments if one.published is not None}
    if not found:
        raise BenchError(
            f"{folder}: its suite names no published table; give one with --table (known: {', '.join(known_tables())}, "
            f"or a {OWN} file), or add `published:` to the suite and run it again"
        )
    return found


def _suits(table: Published, experiment: Experiment) -> bool:
    if isinstance(table, PublishedTable):
        return experiment.dataset == table.dataset
    return not table.targets.isdisjoint(experiment.targets)


def _compare(experiment: Experiment, table: Published, rows: pd.DataFrame) -> Verification | Cited:
    if (ours := experiment.measure.column) != table.metric:
        raise BenchError(f"{experiment.name}: table {table.name} is of {table.metric}, the runs are of {ours}")
    rows = rows.astype({"method": object, "target": object})
    return _verified(experiment, table, rows) if isinstance(table, PublishedTable) else cited(experiment, table, rows)


def _verified(experiment: Experiment, table: PublishedTable, rows: pd.DataFrame) -> Verification:
    references = {row.method: row.reference for row in table.rows}
    published = {"methods": list(references), "targets": list(table.targets)}
    have = {"methods": [*dict.fromkeys(rows["method"])], "targets": [*dict.fromkeys(rows["target"])]}
    absent = {what: [name for name in published[what] if name not in have[what]] for what in have}
    common = rows[rows["method"].isin(references) & rows["target"].isin(table.targets)]
    common = common.assign(reference=common["method"].map(references).astype(bool))
    return Verification(
        experiment=experiment,
        table=table,
        runs=common,
        cells=_cells(experiment, table, common),
        pairs=_pairs(table, common.iloc[:0] if absent["targets"] else common),
        absent=absent,
        extra={what: [name for name in have[what] if name not in published[what]] for what in have},
    )


def _cells(experiment: Experiment, table: PublishedTable, common: pd.DataFrame) -> pd.DataFrame:
    """The rows of `verify` of one experiment."""
    ours = ["target", "method", "mean", "standard_error", "n_ok", "n_planned", "bold_paper"]
    board = leaderboard(common)[ours] if len(common) else pd.DataFrame(columns=ours)
    if set(common["target"]) != set(table.targets):
        board = board[board["target"] != AVERAGE]  # a mean over other targets cannot be compared
    found = _published(table).merge(board, "left", ["target", "method"])
    found = found.assign(
        suite=common.attrs["plan"].suite, experiment=experiment.name, dataset=experiment.dataset, table=table.name,
        metric=table.metric, published_runs=table.runs,
    )  # fmt: skip
    found = found.astype({"mean": float, "standard_error": float, "bold_paper": "boolean"})
    found[["n_ok", "n_planned"]] = found[["n_ok", "n_planned"]].astype("Int64").fillna(0)
    found["difference"] = found["mean"] - found["published_mean"]
    errors = found["standard_error"], found["published_standard_error"]
    return found.assign(**standardised(found["difference"], found["n_ok"], *errors, table.runs))[[*COLUMNS]]


def _published(table: PublishedTable) -> pd.DataFrame:
    """A row for each number of a table, column by column."""
    columns = zip(*([(row, cell) for cell in row.cells] for row in table.rows), strict=True)
    return pd.DataFrame(
        [
            (cell.column or AVERAGE, row.method, row.reference, cell.mean, cell.standard_error, cell.bold)
            for column in columns
            for row, cell in column
        ],
        columns=["target", "method", "reference", "published_mean", "published_standard_error", "published_bold"],
    )


def _pairs(table: PublishedTable, common: pd.DataFrame) -> pd.DataFrame:
    """Compares the order of our means over the targets with the published order; see `Verification.pairs`.

    Our difference between two methods is computed seed by seed. The published difference gets a standard error as if
    its runs were not paired. That is too large if runs with the same seed are correlated, so an inversion is called
    noise too often rather than too rarely.
    """
    averages = {row.method: row.cells[-1] for row in table.rows if not row.reference}
    rows = []
    for grid in grids(common):
        known = sorted((name for name in averages if name in grid.ranked), key=lambda name: -averages[name].mean)
        for first, second in combinations(known, 2):
            published = averages[first].mean - averages[second].mean
            ours = summarize(grid.merits[None].differences(first, second), grid.merits[None].unit)
            error = math.hypot(averages[first].standard_error, averages[second].standard_error)
            if ours.n and published:
                rows.append((first, second, published, ours.mean, ours.n, ours.standard_error, error))
    columns = ["first", "second", "published", "ours", "n", "standard_error", "published_standard_error"]
    found = pd.DataFrame(rows, columns=columns)
    errors = found.pop("standard_error"), found.pop("published_standard_error")
    difference = found["ours"] - found["published"]
    return found.assign(**standardised(difference, found.pop("n"), *errors, table.runs))
