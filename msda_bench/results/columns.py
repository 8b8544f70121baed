"""Columns of leaderboards that are shown on request; other distributions bring theirs by the hook `msda_columns`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pandas as pd

from msda_bench.loading import Brought, brought, claimed
from msda_bench.marker import hookimpl
from msda_bench.results.report import FORMATS

GROUP = "msda_bench.columns"
"""Name of the entry-point group of columns."""
_HOOK = "msda_columns"


@dataclass(frozen=True)
class BoardColumn:
    """A column of leaderboards, shown where `--columns` names it.

    Attributes:
        name: its head, and its word in `--columns`.
        note: what it shows, a sentence below the table.
        values: from the selected runs of an experiment (`load_results` has the columns) to a number by method.
        format: how the numbers are shown: `number`, `seconds`, `count`, `p`, `weight` or `correlation`.
    """

    name: str
    note: str
    values: Callable[[pd.DataFrame], pd.Series[float]]
    format: str = "number"


def board_columns(names: Iterable[str]) -> tuple[dict[str, tuple[BoardColumn, Brought]], list[str]]:
    """The columns of these names that are installed, and a line for each that cannot be used; targets are none."""
    columns: dict[str, tuple[BoardColumn, Brought]] = {}
    faults, wanted = [], {*names}
    for part in brought(GROUP, _HOOK) if wanted else ():
        if isinstance(part, str):
            faults.append(part)
        elif not (isinstance(part.value, BoardColumn) and part.value.format in FORMATS):
            faults.append(f"{part.origin}: hook {_HOOK}: needs msda_bench.commands.BoardColumn of a known format")
        elif part.value.name in columns:
            faults.append(claimed(f"column {part.value.name!r}", (columns[part.value.name][1].origin, part.origin)))
        elif part.value.name in wanted:
            columns[part.value.name] = part.value, part
    return columns, faults


def _seconds(runs: pd.DataFrame) -> pd.Series[float]:
    """The mean over the ok runs, by method."""
    ok = (runs["status"] == "ok").to_numpy()
    return runs["train_seconds"].where(ok).groupby(runs["method"].astype(object), sort=False).mean()


@hookimpl
def msda_columns() -> list[BoardColumn]:
    """The built-in columns."""
    note = "of training, mean over the runs shown; runs that were trained as one stack share its time."
    return [BoardColumn("seconds", note, _seconds, "seconds")]
