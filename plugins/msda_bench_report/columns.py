"""The columns of the site's leaderboard: one for each experiment of a result folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from msda_bench.errors import BenchError, printable
from msda_bench.plugins import Registry
from msda_bench.results.experiment_tables import View
from msda_bench.results.notes import environments
from msda_bench.results.recorded import load_cells
from msda_bench.results.rows import main_rows
from msda_bench.results.scores import Grid
from msda_bench.results.tables import rows_of
from msda_bench.results.words import counted
from msda_bench.suite.plan import Experiment
from msda_bench_report.figures import slugs
from msda_bench_report.page import REPORT, Findings


@dataclass(frozen=True)
class Column:
    """An experiment on the site.

    Attributes:
        link: the address of its page, from the site's first page.
        folder: the folder of its page on the site.
        view: its part of the analysis.
        grid: its runs, for comparisons across datasets.
        modality: the kind of data, such as text.
        protocol: keywords of its protocol, such as `equal steps`.
        made_on: the systems that made its runs, with counts if there are several.
        varies_sources: whether it is one of several experiments that differ in a source left out.
    """

    link: str
    folder: str
    view: View
    grid: Grid
    modality: str
    protocol: tuple[str, ...]
    made_on: tuple[str, ...]
    varies_sources: bool

    @property
    def experiment(self) -> Experiment:
        """The planned experiment."""
        return self.view.experiment

    @cached_property
    def rows(self) -> dict[str, Mapping[str, Any]]:
        """Its main rows of the leaderboard, by method; unknown values are None.

        `mark` is * or ! for methods that are significantly better or worse than the control.
        """
        rows = main_rows(self.view.board)
        # A single ranked method is not marked as the best.
        unmarked = {"bold_holm": None} if rows["rank"].notna().sum() < 2 else {}  # noqa: PLR2004
        mark = self.view.mark if self.view.control else lambda _: ""
        return {row["method"]: row | {"mark": mark(row)} | unmarked for row in rows_of(rows)}

    @property
    def compares(self) -> str:
        """`methods`, or `variants` if there is no baseline or reference among them, or sources are varied."""
        compared = self.experiment.baseline or self.experiment.references
        return "methods" if compared and not self.varies_sources else "variants"

    @property
    def n_ranked(self) -> int:
        """The number of methods that have a rank."""
        return sum(row["rank"] is not None for row in self.rows.values())

    @cached_property
    def n_ok(self) -> int:
        """The number of runs that are ok."""
        return int((self.view.runs["status"] == "ok").sum())

    @property
    def n_planned(self) -> int:
        """The number of planned runs."""
        return len(self.view.runs)

    @property
    def seeds(self) -> int:
        """The number of seeds with scores of its most complete method."""
        return max((int(row["n_ok"]) for row in self.rows.values()), default=0)

    @property
    def is_tested(self) -> bool:
        """Whether there are enough seeds for a test of all pairs to show a difference."""
        return any(row["bold_holm"] is not None for row in self.rows.values())


def columns(folder: str, findings: Findings, registry: Registry) -> Iterator[Column]:
    """The experiments of a result folder.

    Args:
        folder: the folder of its page on the site.
        findings: what its runs say.
        registry: knows the kind of data of installed datasets.

    Raises:
        StoreError: a record cannot be read.
    """
    planned = findings.analysis.runs.attrs["plan"].experiments
    anchors = slugs(experiment.name for experiment in planned)
    by_name = {grid.experiment.name: grid for grid in findings.analysis.grids}
    varied = {experiment.dataset for experiment in planned if experiment.without is not None}
    for view in findings.views:
        experiment = view.experiment
        steps = "unequal steps" if any(note.kind == "steps" for note in view.notes) else "equal steps"
        settings = "settings selected" if experiment.criteria else "settings fixed"
        yield Column(
            f"{folder}/{REPORT}#{anchors[experiment.name]}",
            folder,
            view,
            by_name[experiment.name],
            _modality(experiment.dataset, registry),
            (*_tested(view.runs), steps, settings),
            tuple(_made_on(view.runs)),
            experiment.dataset in varied,
        )


def in_order(columns: Iterable[Column]) -> list[Column]:
    """Keeps each folder's columns in its suite's order; folders that share most methods with others come first.

    Folders whose tests can show a difference come before others; columns that compare variants come last.
    """
    every = list(columns)
    counts = pd.Series([name for column in every for name in column.rows], dtype=object).value_counts()

    def place(column: Column) -> tuple[bool, bool, int, int]:
        shared = sum(int(counts[name]) - 1 for name in column.rows)
        return column.compares == "variants", not (shared and column.is_tested), -shared, -column.n_ok

    first = {one.folder: min(place(other)[1:] for other in every if other.folder == one.folder) for one in every}
    given = [*first]
    return sorted(every, key=lambda one: (one.compares == "variants", *first[one.folder], given.index(one.folder)))


def _modality(dataset: str, registry: Registry) -> str:
    try:
        kind = registry.entry("dataset", dataset).cls
    except BenchError:  # its plugin is not installed here
        return "other"
    return printable(getattr(kind, "modality", "other"), 20)


def _tested(runs: pd.DataFrame) -> Iterator[str]:
    """The protocol's keywords for the target examples that methods saw, from the first record of each method."""
    made = runs[(runs["status"] != "missing").to_numpy()]
    cells = load_cells(made.drop_duplicates("method")).values()
    protocols = {cell.get("dataset", {}).get("params", {}).get("protocol") for cell in cells}
    yield "transductive" if "transductive" in protocols else "held out"
    if any(cell.get("labelled_target") for cell in cells):
        yield "some target labels"


def _made_on(runs: pd.DataFrame) -> Iterator[str]:
    known = environments(runs[runs["key"].notna()])
    for system, made in known:
        yield system if len(known) == 1 else f"{system} ({counted(len(made), 'run')})"
