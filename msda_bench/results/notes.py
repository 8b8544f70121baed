"""What a reader must know of how runs came about: typed notes, worded here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import pandas as pd

from msda_bench.results.frame import PROBLEMS, experiments
from msda_bench.results.select import select, selection_notes

Kind: TypeAlias = Literal[
    "suite", "candidates", "conflict", "damaged", "validator", "slower", "plain_loops", "versions", "steps"
]
_WORDS = {"timeout": "timed out", "oom": "out of memory"}


@dataclass(frozen=True)
class Note:
    """One sentence on the runs of an experiment.

    Attributes:
        kind: what it is about.
        experiment: whose runs.
        line: the sentence.
    """

    kind: Kind
    experiment: str
    line: str


def notes(runs: pd.DataFrame) -> list[Note]:
    """The suite's own notes, then what the records show: the same whatever the order in which they were made.

    Args:
        runs: of `load_results`.
    """
    chosen = select(runs)
    candidates = selection_notes(runs)
    found = []
    for experiment, rows in experiments(chosen):
        name = experiment.name
        found += [Note("suite", name, line) for line in experiment.notes]
        found += [note for note in candidates if note.experiment == name]
        found += [Note(kind, name, line) for kind, line in _remarks(rows, experiment)]
    return found
