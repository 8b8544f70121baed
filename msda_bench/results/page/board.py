"""The leaderboard's table: best first, with what every chart shows of each method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from msda_bench.results.frame import AVERAGE, PROBLEMS
from msda_bench.results.plots.parts import name_of
from msda_bench.suite.plan import Experiment

MOST_SHOWN = 12
"""Methods that charts show at first, beside references and the baseline."""


@dataclass(frozen=True)
class BoardRow:
    """A method.

    Attributes:
        name: as everywhere in the page.
        cells: its rows of the leaderboard, the column that methods are ranked by first; None for what is not known.
        shown: whether charts show it at first.
        fixed: whether they always do: references and the baseline.
    """

    name: str
    cells: tuple[Mapping[str, Any], ...]
    shown: bool
    fixed: bool

    @property
    def main(self) -> Mapping[str, Any]:
        """Its row in the column that methods are ranked by."""
        return self.cells[0]

    @property
    def problems(self) -> tuple[str, ...]:
        """What became of runs that are not ok: `2 failed`."""
        return tuple(f"{count} {status}" for status in PROBLEMS if (count := self.main[f"n_{status}"]))

    @property
    def kinds(self) -> str:
        """Words to filter rows by."""
        facts = {"reference": self.main["reference"], "ranked": not self.main["reference"]}
        return " ".join(kind for kind, holds in {**facts, "marked": self.main["bold_holm"]}.items() if holds)


@dataclass(frozen=True)
class Board:
    """The table.

    Attributes:
        columns: `average` first, then the targets.
        rows: methods, best first, references last.
        baseline: None where there is none, and so no gains.
    """

    columns: tuple[str, ...]
    rows: tuple[BoardRow, ...]
    baseline: str | None

    @property
    def shown(self) -> tuple[str, ...]:
        """The methods that charts show at first."""
        return tuple(row.name for row in self.rows if row.shown)

    @property
    def has_marks(self) -> bool:
        """Whether any score is the best, or not significantly different from it."""
        return any(cell["bold_holm"] for row in self.rows for cell in row.cells)

    @property
    def runs(self) -> str:
        """`10/20` where every score is of so many runs, which is then said once."""
        counts = {f"{cell['n_ok']}/{cell['n_planned']}" for row in self.rows for cell in row.cells}
        return counts.pop() if len(counts) == 1 else ""

    @property
    def has_problems(self) -> bool:
        """Whether methods differ in what became of their runs."""
        return len({row.problems for row in self.rows}) > 1


def board(experiment: Experiment, leaderboard: pd.DataFrame) -> Board:
    """The table of an experiment's rows of the leaderboard."""
    plain = leaderboard.astype(object)
    plain = plain.where(plain.notna(), None)
    targets = sorted(dict.fromkeys(plain["target"]), key=lambda name: name != AVERAGE)
    targets = targets if len(targets) > 2 else targets[-1:]  # noqa: PLR2004 - the average of one target is that target
    records = (dict(zip(plain.columns, row, strict=True)) for row in plain.itertuples(index=False))
    cells = {(cell["method"], cell["target"]): cell for cell in records}
    main = leaderboard[(leaderboard["target"].astype(object) == targets[0]).to_numpy()]
    order = main.sort_values(["reference", "rank"], kind="stable", na_position="last")["method"].astype(object)
    rows = []
    for place, method in enumerate(order):
        fixed = bool(cells[method, targets[0]]["reference"]) or method == experiment.baseline
        own = tuple(cells[method, target] for target in targets)
        rows.append(BoardRow(name_of(method), own, fixed or place < MOST_SHOWN, fixed))
    baseline = None if experiment.baseline is None else name_of(experiment.baseline)
    return Board(tuple(map(name_of, targets)), tuple(rows), baseline)
