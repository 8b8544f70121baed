"""The leaderboard's table: best first, with what every chart shows of each method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from msda_bench.results.frame import AVERAGE
from msda_bench.results.plots.parts import name_of
from msda_bench.suite.plan import Experiment

MOST_SHOWN = 12
"""Methods that charts show at first, beside references and the baseline."""
NOTHING = "-"


@dataclass(frozen=True)
class Score:
    """A method in one column.

    Attributes:
        text: mean and standard error.
        sort: the mean in full, or nothing.
        marked: whether it is the best, or not significantly different from it.
        best: whether its mean is the best.
        runs: `9/10` where runs have no score.
    """

    text: str
    sort: str
    marked: bool
    best: bool
    runs: str


@dataclass(frozen=True)
class BoardRow:
    """A method.

    Attributes:
        name: as everywhere in the page.
        rank: `-` for references.
        scores: column by column.
        gain: over the baseline, in the main column.
        harmful: whether the baseline is significantly better.
        shown: whether charts show it at first.
        fixed: whether they always do: references and the baseline.
        kind: words to filter by.
        notes: badges.
        recipe: one line.
        distributions: that its components come from.
    """

    name: str
    rank: str
    scores: tuple[Score, ...]
    gain: Score
    harmful: bool
    shown: bool
    fixed: bool
    kind: str
    notes: tuple[str, ...]
    recipe: str
    distributions: str


@dataclass(frozen=True)
class Board:
    """The table.

    Attributes:
        columns: `average` first, then the targets.
        rows: methods, best first, references last.
        unit: of the scores.
        lower_is_better: whether they are errors.
        baseline: None where there is none, and so no gains.
        runs: `10/20` where every score is of so many runs, which is then said once.
        has_notes: whether rows differ in their badges.
        has_marks: whether any score is marked.
    """

    columns: tuple[str, ...]
    rows: tuple[BoardRow, ...]
    unit: str
    lower_is_better: bool
    baseline: str | None
    runs: str
    has_notes: bool
    has_marks: bool

    @property
    def shown(self) -> tuple[str, ...]:
        """The methods that charts show at first."""
        return tuple(row.name for row in self.rows if row.shown)


def board(experiment: Experiment, leaderboard: pd.DataFrame) -> Board:
    """The table of an experiment's rows of the leaderboard."""
    targets = list(dict.fromkeys(leaderboard["target"].astype(object)))
    columns = [AVERAGE, *(name for name in targets if name != AVERAGE)] if len(targets) > 2 else targets[:1]  # noqa: PLR2004
    main = leaderboard[(leaderboard["target"].astype(object) == columns[0]).to_numpy()]
    order = main.sort_values(["reference", "rank"], kind="stable", na_position="last")["method"]
    percent = leaderboard["metric"].iloc[0] == "accuracy_percent"
    of = leaderboard.set_index(["method", "target"])
    form = "{:.2f}" if percent else "{:.3g}"
    rows = tuple(
        _row(experiment, [of.loc[(method, column)] for column in columns], name_of(method), place, form)
        for place, method in enumerate(order)
    )
    runs = {score.runs for row in rows for score in row.scores}
    return Board(
        columns=tuple(map(name_of, columns)),
        rows=rows,
        unit="accuracy in percent" if percent else "mean squared error, lower is better",
        lower_is_better=not percent,
        baseline=None if experiment.baseline is None else name_of(experiment.baseline),
        runs=runs.pop() if len(runs) == 1 else "",
        has_notes=len({row.notes for row in rows}) > 1,
        has_marks=any(score.marked for row in rows for score in row.scores),
    )


def _row(experiment: Experiment, cells: list[pd.Series[Any]], name: str, place: int, form: str) -> BoardRow:
    main = cells[0]
    reference = bool(main["reference"])
    fixed = reference or name == name_of(experiment.baseline)
    scores = tuple(_score(cell, form) for cell in cells)
    statuses = ("diverged", "failed", "timeout", "oom", "skipped", "missing")
    notes = [f"{main[f'n_{status}']} {status}" for status in statuses if main[f"n_{status}"]]
    kinds = ["reference" if reference else "ranked", *(["marked"] if scores[0].marked else [])]
    return BoardRow(
        name=name,
        rank=NOTHING if pd.isna(main["rank"]) else str(main["rank"]),
        scores=scores,
        gain=_gain(main, form),
        harmful=bool(pd.notna(main["negative_transfer"]) and main["negative_transfer"]),
        shown=fixed or place < MOST_SHOWN,
        fixed=fixed,
        kind=" ".join([*kinds, *(["trouble"] if notes else [])]),
        notes=tuple(notes),
        recipe="" if pd.isna(main["recipe"]) else str(main["recipe"]),
        distributions="" if pd.isna(main["distributions"]) else str(main["distributions"]),
    )


def _score(cell: Mapping[str, Any], form: str) -> Score:
    runs = f"{cell['n_ok']}/{cell['n_planned']}" if cell["n_ok"] < cell["n_planned"] else ""
    if pd.isna(cell["mean"]):
        return Score(NOTHING, "", marked=False, best=False, runs=runs)
    error = "" if pd.isna(cell["standard_error"]) else f" ± {form.format(cell['standard_error'])}"
    marked = bool(pd.notna(cell["bold_holm"]) and cell["bold_holm"])
    best = bool(pd.notna(cell["rank"]) and cell["rank"] == 1)
    return Score(form.format(cell["mean"]) + error, repr(float(cell["mean"])), marked, best, runs)


def _gain(cell: Mapping[str, Any], form: str) -> Score:
    if pd.isna(cell["gain"]):
        return Score("", "", marked=False, best=False, runs="")
    sign = "+" if cell["gain"] >= 0 else "\N{MINUS SIGN}"
    return Score(sign + form.format(abs(cell["gain"])), repr(float(cell["gain"])), marked=False, best=False, runs="")
