"""The frame class of runs and leaderboards: a pandas data frame that knows the results that its rows are from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

if TYPE_CHECKING:
    from msda_bench.results.model_selection import Choices, Selection
    from msda_bench.store import Store
    from msda_bench.suite.plan import Plan


@dataclass(frozen=True, eq=False)
class Results:
    """What belongs to the rows of a frame, but is no column.

    Attributes:
        plan: the plan of the runs, without its cells.
        folder: the result folder; None for runs that are in none.
        store: the records of that folder.
        damaged: keys of cells that have no result, since their records are damaged.
        conflicting: keys of cells with two different results.
        fault_lines: a line for each record that is damaged or in conflict.
        choices: which settings the tracks choose on tuning seeds, where a suite has such seeds.
        selection: how the settings of the rows were selected, if they were.
    """

    plan: Plan
    folder: str | None = None
    store: Store | None = None
    damaged: tuple[str, ...] = ()
    conflicting: tuple[str, ...] = ()
    fault_lines: tuple[str, ...] = ()
    choices: Choices | None = None
    selection: Selection | None = None


class ResultsFrame(pd.DataFrame):
    """A frame of runs, or of their leaderboard.

    pandas hands `results` on when rows or columns are chosen, and drops it when frames are joined. It is no column and
    not in `attrs`, so files such as Parquet hold the columns alone.
    """

    _metadata = ["results"]  # noqa: RUF012 - pandas wants a list
    results: Results | None = None

    @property
    def _constructor(self) -> type[ResultsFrame]:
        return ResultsFrame


def with_results(frame: pd.DataFrame, results: Results | None) -> ResultsFrame:
    """The frame with the results that its rows are from."""
    known = ResultsFrame(frame)
    known.results = results
    return known


def known_results(frame: pd.DataFrame) -> Results | None:
    """The results that the rows of a frame are from; None if the frame does not know them."""
    return frame.results if isinstance(frame, ResultsFrame) else None


def results_of(frame: pd.DataFrame) -> Results:
    """The results that the rows of a frame are from.

    Raises:
        ValueError: the frame does not know them.
    """
    results = known_results(frame)
    if results is None:
        raise ValueError("the frame has lost its plan, as it does where frames are joined or rebuilt")
    return results


def are_ok(runs: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether each run is ok."""
    return (runs["status"] == "ok").to_numpy(dtype=bool)


def ok_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that are ok."""
    return runs[are_ok(runs)]


def recorded_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that have a record."""
    return runs[(runs["status"] != "missing").to_numpy(dtype=bool)]
