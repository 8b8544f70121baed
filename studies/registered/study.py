"""What the tables of the registered measurement are made of: gains and tests by track, and the tasks that count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

import msda_bench as mb
from estimates import mean_with_errors
from margins import holm, margin_of
from msda_bench.results.model_selection import select
from task_gains import gains_of, overlaps_of, tasks_of, tests_of

TRACKS = {"A": "first", "B": "source_accuracy", "B with InfoMax": "source_accuracy+infomax", "C": "oracle"}
SMALLEST_P = 0.001

ByTrack: TypeAlias = Mapping[str, Any]
"""Frames, whose stubs know too little of what an index holds."""


@dataclass(frozen=True, eq=False)
class Study:
    """What the tables are made of.

    Attributes:
        chosen: the runs that each track selects.
        gains: of these, over SRC.
        tests: of each method with SRC, in each task.
        counted: the tasks with headroom, which the means are over.
    """

    chosen: Mapping[str, pd.DataFrame]
    gains: ByTrack
    tests: ByTrack
    counted: list[str]

    @classmethod
    def of(cls, runs: pd.DataFrame) -> Study:
        """The study of these runs."""
        chosen = {track: select(runs, by) for track, by in TRACKS.items()}
        gains = {track: gains_of(frame) for track, frame in chosen.items()}
        tests = {track: tests_of(frame, gains[track]) for track, frame in chosen.items()}
        return cls(chosen, gains, tests, counted_tasks(chosen["B"]))

    @property
    def margins(self) -> dict[str, float]:
        """The margin of each task that counts, in points."""
        return {task: margin_of(task) for task in self.counted}

    @property
    def margin(self) -> float:
        """The margin of a mean over tasks."""
        return round(float(np.mean([*self.margins.values()])), 2)

    def with_shared_examples(self, track: str, tasks: list[str], methods: list[str]) -> pd.DataFrame:
        """Mean gains with errors that allow for the examples that seeds share, and their p after Holm's correction."""
        gains = self.gains[track].loc[tasks, methods]
        overlaps = overlaps_of(self.chosen[track])
        means = []
        for name in gains:
            mean, errors, freedom = tasks_of(gains[name], overlaps).to_numpy().T
            means.append(mean_with_errors(mean, errors, freedom, self.margin))
        p = holm([mean.p for mean in means])
        p_beyond = holm([mean.p_beyond for mean in means])
        columns = {
            "shared": [interval_text(mean[:3]) for mean in means],
            "shared p": [p_text(value) for value in p],
            "shared p beyond": [p_text(value) for value in p_beyond],
        }
        return pd.DataFrame(columns, [*gains])


def counted_tasks(chosen: pd.DataFrame) -> list[str]:
    """The tasks that count across datasets."""
    columns = [str(name) for name in mb.across(chosen)]
    return [name.removeprefix("gain:") for name in columns if name.startswith("gain:")]


def interval_text(numbers: Iterable[float]) -> str:
    """A mean and the ends of its interval."""
    return "{:+.1f} [{:+.1f}, {:+.1f}]".format(*numbers)


def p_text(p: float) -> str:
    """A p-value with three decimals."""
    return f"{p:.3f}" if p >= SMALLEST_P else "< 0.001"
