"""The decision table: what each method is against the baseline, over all datasets and on each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from msda_bench.results.across import Across, across_of, standings
from msda_bench.results.decision import (
    BETTER,
    BETTER_BY_MORE,
    EQUIVALENT,
    NOT_SIGNIFICANT,
    SAME,
    STANDINGS,
    UNDECIDED,
    UNKNOWN,
    WORSE,
)
from msda_bench.results.leaderboard import Analysis
from msda_bench.results.runs import results_of
from msda_bench.results.words import name_of
from msda_bench.suite.plan import CHANCE_REFERENCE, FIRST, ORACLE

MARKS = {BETTER_BY_MORE: "▲", BETTER: "△", EQUIVALENT: "=", SAME: "=", WORSE: "▽"}
"""What stands beside a gain, so that colours need not be seen."""
_CLASSES = {BETTER_BY_MORE: "beyond", BETTER: "better", EQUIVALENT: "equal", SAME: "equal", WORSE: "worse"}


_CHOSEN = {FIRST: "each method's own settings", ORACLE: "settings chosen with labels of the target"}


class Gain(NamedTuple):
    """A gain over the baseline with its interval, and what the method is there; None and empty where it is unknown."""

    gain: float | None
    low: float | None = None
    high: float | None = None
    standing: str = ""

    @property
    def mark(self) -> str:
        """The mark of its standing."""
        return MARKS.get(self.standing, "")

    @property
    def kind(self) -> str:
        """The class of its standing in the style sheet."""
        return _CLASSES.get(self.standing, "")


class DecisionRow(NamedTuple):
    """A method, its gain over all datasets, and its gain in each experiment; None where it has no run."""

    name: str
    reference: bool
    whole: Gain
    rank: float | None
    counts: str
    """In how many experiments it is better and worse, where the suite has no margin; or that it is in some alone."""
    cells: tuple[Gain | None, ...]

    @property
    def is_headroom(self) -> bool:
        """Whether it is a reference that gains, and thus shows how much there is to gain."""
        return self.reference and (self.whole.gain or 0) > 0


class Decision(NamedTuple):
    """The table; the methods of a single experiment, if there are several, are apart."""

    baseline: str
    baseline_rank: float | None
    margin: float | None
    level: str
    experiments: tuple[str, ...]
    finds: tuple[float | None, ...]
    """In each experiment the smallest true gain that its tests would find with probability 0.8."""
    whole_finds: float | None
    rows: tuple[DecisionRow, ...]
    alone: tuple[DecisionRow, ...]
    skipped: tuple[str, ...] = ()
    """Which experiments and methods do not count, and why."""
    title: str = ""

    @classmethod
    def of(cls, across: Across | None, title: str = "") -> Decision | None:
        """The table of a comparison across datasets; None if its experiments do not share a baseline."""
        if across is None or across.baseline is None or not across.gains:
            return None
        frame = standings(across)
        cells = {(row["method"], row["experiment"]): _cell(row) for row in across.gains}
        rows: list[DecisionRow] = []
        alone: list[DecisionRow] = []
        for record in frame[~frame["method"].isin([across.baseline, CHANCE_REFERENCE])].to_dict("records"):
            own = tuple(cells.get((record["method"], name)) for name in across.experiments)
            row = _row(record, own, has_margin=across.margin is not None)
            (alone if _there(own) < min(2, len(own)) else rows).append(row)
        finds = pd.DataFrame(across.gains).groupby("experiment")["detectable"].median()
        return cls(
            name_of(across.baseline),
            across.mean_ranks.get(across.baseline),
            across.margin,
            f"{100 * (1 - across.alpha):g} %",
            across.experiments,
            tuple(_known(finds.get(name)) for name in across.experiments),
            _known(frame["detectable"].median()) if "detectable" in frame else None,
            tuple(sorted(rows, key=_place)),
            tuple(sorted(alone, key=_place)),
            across.skipped,
            title,
        )

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """The standings that occur, each with its mark."""
        there = {gain.standing for row in (*self.rows, *self.alone) for gain in (row.whole, *row.cells) if gain}
        return [(MARKS[standing], standing) for standing in (*STANDINGS, SAME) if standing in there & {*MARKS}]


def decisions(analysis: Analysis) -> list[Decision]:
    """The decision table of an analysis, or one for each track if settings are chosen once, on tuning seeds."""
    experiments, runs = results_of(analysis.runs).plan.experiments, analysis.runs
    of_tracks = {table.tuning.tracks if table.tuning else () for table in experiments}
    tracks = of_tracks.pop() if len(of_tracks) == 1 else ()
    if len(tracks) < 2:  # noqa: PLR2004
        tables = [Decision.of(analysis.across)]
    else:
        selected, selection = analysis.selected, results_of(analysis.selected).selection
        own = tracks if selected is runs or selection is None else tracks[:1]  # the first is the plan's own
        tables = [
            Decision.of(
                analysis.across if track in own or selection is None else across_of(selection.candidates.select(track)),
                f"Track {name_of(track)}: {_CHOSEN.get(track, 'settings chosen without labels of the target')}",
            )
            for track in tracks
        ]
    return [table for table in tables if table is not None]


def _row(record: Mapping[Any, Any], cells: tuple[Gain | None, ...], *, has_margin: bool) -> DecisionRow:
    counts = [f"{word} on {n}" for word in (BETTER, WORSE) if (n := record[f"n_{word}"])]
    tested = record["n_tested"]
    text = f"{', '.join(counts)} of\u00a0{tested}" if counts else UNDECIDED if tested else "no test"
    if (there := _there(cells)) < len(cells):
        text = f"mean over {there} of\u00a0{len(cells)}"
    elif has_margin:
        text = ""
    gain, low, high = (_known(record[f"mean_gain{end}"]) for end in ("", "_low", "_high"))
    standing = record.get("standing")
    return DecisionRow(
        name_of(record["method"]),
        bool(record["reference"]),
        Gain(gain, low, high, standing if isinstance(standing, str) else ""),
        _known(record["mean_rank"]),
        "" if record["reference"] else text,
        cells,
    )


def _there(cells: Iterable[Gain | None]) -> int:
    return sum(cell is not None and cell.gain is not None for cell in cells)


def _place(row: DecisionRow) -> tuple[bool, int, float]:
    """References last; the others by their standing, those without one last, then the largest mean gain first."""
    known = row.whole.standing
    return row.reference, STANDINGS.index(known) if known in STANDINGS else len(STANDINGS), -(row.whole.gain or 0)


def _cell(row: Mapping[str, Any]) -> Gain:
    if row["gain"] is None:
        return Gain(None)
    is_tested = row["outcome"] != UNKNOWN or row["reason"] == NOT_SIGNIFICANT
    decided = row.get("standing") or (UNDECIDED if row["outcome"] == UNKNOWN else row["outcome"])
    ends = _known(row["low"]), _known(row["high"])
    return Gain(row["gain"], *ends, decided if is_tested and not row["reference"] else "")


def _known(value: Any) -> float | None:
    return None if value is None or pd.isna(value) else float(value)
