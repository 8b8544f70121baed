"""Builds the page's table of the leaderboard, and chooses the methods that charts show at first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from msda_bench.analysis import AVERAGE, PROBLEMS, Experiment, View, differing, main_pairs, name_of, rows_of

MOST_SHOWN = 12
"""The number of methods that charts show at first, besides references and the baseline."""


class BoardRow(NamedTuple):
    """A method with its rows of the leaderboard; unknown values are None."""

    name: str
    cells: tuple[Mapping[str, Any], ...]
    shown: bool
    """Whether charts show it at first."""
    fixed: bool
    """Whether charts always show it: references and the baseline."""
    harmed: bool
    """Whether the baseline is significantly better after the correction, in the column by which methods are ranked."""

    @property
    def main(self) -> Mapping[str, Any]:
        """Its cell in the column by which methods are ranked."""
        return self.cells[0]

    @property
    def problems(self) -> tuple[str, ...]:
        """Counts of runs that are not ok, such as `2 failed`."""
        return tuple(f"{count} {status}" for status in PROBLEMS if (count := self.main[f"n_{status}"]))


class Board(NamedTuple):
    """The table: the best methods first, references last; the column `average` first, then the targets."""

    columns: tuple[str, ...]
    rows: tuple[BoardRow, ...]
    baseline: str | None
    control: str | None
    """The method with which the others are compared, if tests are corrected over these comparisons alone."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The methods that charts show at first."""
        return tuple(row.name for row in self.rows if row.shown)

    @property
    def has_marks(self) -> bool:
        """Whether any score is marked: as the best, or as not shown to be worse."""
        return any(cell["bold_holm"] for row in self.rows for cell in row.cells)

    @property
    def has_differences(self) -> bool:
        """Whether any score differs significantly from the control's."""
        return any(cell["mark"] for row in self.rows for cell in row.cells)

    @property
    def runs(self) -> str:
        """The number of runs, such as `10/20`, if it is equal for all scores and thus shown once; otherwise empty."""
        counts = {f"{cell['n_ok']}/{cell['n_planned']}" for row in self.rows for cell in row.cells}
        return counts.pop() if len(counts) == 1 else ""

    @property
    def has_problems(self) -> bool:
        """Whether methods differ in the statuses of their runs."""
        return len({row.problems for row in self.rows}) > 1


def board(experiment: Experiment, leaderboard: pd.DataFrame, pairs: pd.DataFrame) -> Board:
    """Builds the table from an experiment's rows of the leaderboard and the comparisons."""
    targets = sorted(leaderboard["target"].astype(object).unique(), key=lambda name: name != AVERAGE)
    targets = targets if len(targets) > 2 else targets[-1:]  # noqa: PLR2004 - the average of one target is that target
    view = View(experiment, leaderboard[:0], leaderboard, pairs)
    cells = {
        (cell["method"], cell["target"]): cell | {"mark": view.mark(cell) if view.control else ""}
        for cell in rows_of(leaderboard)
    }
    main = leaderboard[(leaderboard["target"].astype(object) == targets[0]).to_numpy()]
    order = main.sort_values(["reference", "rank"], kind="stable", na_position="last")["method"].astype(object)
    found = experiment.baseline and differing(experiment.baseline, order, main_pairs(pairs))
    harmed = found[1] if found else []
    rows = []
    for place, method in enumerate(order):
        own = tuple(cells[method, target] for target in targets)
        fixed = bool(own[0]["reference"]) or method == experiment.baseline
        rows.append(BoardRow(name_of(method), own, fixed or place < MOST_SHOWN, fixed, method in harmed))
    baseline = None if experiment.baseline is None else name_of(experiment.baseline)
    control = None if view.control is None else name_of(view.control)
    return Board(tuple(map(name_of, targets)), tuple(rows), baseline, control)
