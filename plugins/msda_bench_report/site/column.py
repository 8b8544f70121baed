"""Turns an experiment of a result folder into a column of the site's leaderboard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from msda_bench.analysis import (
    Analysis,
    BenchError,
    Experiment,
    Grid,
    Registry,
    Row,
    View,
    counted,
    differing,
    environments,
    experiments,
    grids,
    load_cells,
    main_pairs,
    main_rows,
    notes,
    own_rows,
    printable,
    rows_of,
    select,
    verdict,
)
from msda_bench_report.page.page import REPORT
from msda_bench_report.page.parts import slugs


@dataclass(frozen=True)
class Column:
    """An experiment on the site.

    Attributes:
        folder: the folder of its page on the site.
        anchor: its id on that page.
        grid: its runs, for comparisons across datasets.
        pairs: its decided comparisons.
        rows: its main rows of the leaderboard, by method; unknown values are None. `mark` is * or ! for methods that
            are significantly better or worse than the control.
        control: the method with which tests compare the others, if there is one.
        verdict: the sentences of its verdict.
        better: the methods significantly better than its baseline, the best first; None if no test could show it.
        modality: the kind of data, such as text.
        protocol: keywords of its protocol, such as `equal steps`.
        made_on: the systems that made its runs, with counts if there are several.
        n_ok: the number of runs that are ok.
        n_planned: the number of planned runs.
        varies_sources: whether it is one of several experiments that differ in a source left out.
    """

    folder: str
    anchor: str
    grid: Grid
    pairs: Sequence[Row]
    rows: Mapping[str, Mapping[Any, Any]]
    control: str | None
    verdict: tuple[str, ...]
    better: tuple[str, ...] | None
    modality: str
    protocol: tuple[str, ...]
    made_on: tuple[str, ...]
    n_ok: int
    n_planned: int
    varies_sources: bool

    @property
    def experiment(self) -> Experiment:
        """The planned experiment."""
        return self.grid.experiment

    @property
    def compares(self) -> str:
        """`methods`, or `variants` if there is no baseline or reference among them, or sources are varied."""
        compared = self.experiment.baseline or self.experiment.references
        return "methods" if compared and not self.varies_sources else "variants"

    @property
    def n_ranked(self) -> int:
        """The number of methods that have a rank."""
        return sum(row["rank"] is not None for row in self.rows.values())

    @property
    def seeds(self) -> int:
        """The number of seeds with scores of its most complete method."""
        return max((int(row["n_ok"]) for row in self.rows.values()), default=0)

    @property
    def is_tested(self) -> bool:
        """Whether there are enough seeds for a test of all pairs to show a difference."""
        return any(row["bold_holm"] is not None for row in self.rows.values())

    @property
    def link(self) -> str:
        """The address of its page, from the site's first page."""
        return f"{self.folder}/{REPORT}#{self.anchor}"


def columns(folder: str, analysis: Analysis, registry: Registry) -> Iterator[Column]:
    """The experiments of a result folder.

    Args:
        folder: the folder of its page on the site.
        analysis: the analysis of its runs.
        registry: knows the kind of data of installed datasets.

    Raises:
        StoreError: a record cannot be read.
    """
    runs = analysis.runs
    unequal = {note.experiment for note in notes(runs) if note.kind == "steps"}
    anchors = slugs(table.name for table in runs.attrs["plan"].experiments)
    found = {grid.experiment.name: grid for grid in grids(runs)}
    varied = {one.dataset for one in runs.attrs["plan"].experiments if one.without is not None}
    for experiment, rows in experiments(select(runs)):
        name = experiment.name
        board, pairs = own_rows(experiment, analysis.leaderboard), own_rows(experiment, analysis.comparisons)
        view = View(experiment, rows, board, pairs)
        yield Column(
            folder,
            anchors[name],
            found[name],
            [{str(name): value for name, value in row.items()} for row in pairs.to_dict("records")],
            _by_method(main_rows(board), view),
            view.control,
            verdict(experiment, rows, board, pairs),
            _better(experiment, board, pairs),
            _modality(experiment.dataset, registry),
            (*_tested(rows), "unequal steps" if name in unequal else "equal steps", _settings(experiment)),
            tuple(_made_on(rows)),
            int((rows["status"] == "ok").sum()),
            len(rows),
            experiment.dataset in varied,
        )


def _better(experiment: Experiment, board: pd.DataFrame, pairs: pd.DataFrame) -> tuple[str, ...] | None:
    rows = main_rows(board)
    ranked = [str(name) for name in rows[rows["rank"].notna()].sort_values("rank", kind="stable")["method"]]
    if experiment.baseline not in ranked:
        return None
    found = differing(experiment.baseline, ranked, main_pairs(pairs))
    return None if found is None else tuple(found[0])


def _by_method(rows: pd.DataFrame, view: View) -> dict[str, dict[Any, Any]]:
    # A single ranked method is not marked as the best.
    unmarked = {"bold_holm": None} if rows["rank"].notna().sum() < 2 else {}  # noqa: PLR2004
    return {row["method"]: row | {"mark": view.mark(row) if view.control else ""} | unmarked for row in rows_of(rows)}


def _modality(dataset: str, registry: Registry) -> str:
    try:
        kind = registry.entry("dataset", dataset).cls
    except BenchError:  # its plugin is not installed here
        return "other"
    return printable(getattr(kind, "modality", "other"), 20)


def _tested(rows: pd.DataFrame) -> Iterator[str]:
    """The protocol's keywords for the target examples that methods saw, from the first record of each method."""
    made = rows[(rows["status"] != "missing").to_numpy()]
    cells = load_cells(made.drop_duplicates("method")).values()
    protocols = {cell.get("dataset", {}).get("params", {}).get("protocol") for cell in cells}
    yield "transductive" if "transductive" in protocols else "held out"
    if any(cell.get("labelled_target") for cell in cells):
        yield "some target labels"


def _made_on(rows: pd.DataFrame) -> Iterator[str]:
    found = environments(rows[rows["key"].notna()])
    for on, own in found:
        yield on if len(found) == 1 else f"{on} ({counted(len(own), 'run')})"


def _settings(experiment: Experiment) -> str:
    return "settings selected" if experiment.criteria else "settings fixed"
