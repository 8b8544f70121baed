"""A frame of the runs of one experiment from lists of scores."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import pytest

from msda_bench.results.frame import runs_frame
from msda_bench.store.record import Outcome, Record
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell

N_TEST = 200
Run = int | float | str | Outcome | None
"""Correct of 200, a squared error, a status with a message, an outcome, or None for a missing run."""
Runs = Mapping[str, Mapping[str, Sequence[Run]]]


def planned(
    runs: Runs, name: str = "table", dataset: str = "toy", task: str = "classification", **options: object
) -> tuple[Experiment, list[PlannedCell], dict[str, Record]]:
    """An experiment, its cells and records; methods named `ref...` are references."""
    targets = tuple(next(iter(runs.values())))
    seeds = tuple(range(len(next(iter(next(iter(runs.values())).values())))))
    methods = tuple(Method(method, method.startswith("ref"), "recipe", ()) for method in runs)
    experiment = Experiment(name, dataset, task, targets, methods, seeds, **options)
    cells, records = [], {}
    for method, target, seed in ((method, target, seed) for method in runs for target in targets for seed in seeds):
        key = hashlib.sha256(f"{name} {method} {target} {seed}".encode()).hexdigest()
        cells.append(PlannedCell(name, method, target, seed, key))
        if (run := runs[method][target][seed]) is not None:
            records[key] = _record(key, run)
    return experiment, cells, records


def frame_of(*parts: tuple[Experiment, list[PlannedCell], dict[str, Record]]) -> pd.DataFrame:
    """The runs of some experiments of one suite."""
    cells = [cell for _, own, _ in parts for cell in own]
    records = {key: record for *_, own in parts for key, record in own.items()}
    return runs_frame(Plan("suite", tuple(part[0] for part in parts), tuple(cells)), records)


@pytest.fixture
def table() -> Callable[..., pd.DataFrame]:
    """`table({method: {target: [run of seed 0, run of seed 1, ...]}})`."""

    def make(runs: Runs, **options: object) -> pd.DataFrame:
        return frame_of(planned(runs, **options))

    return make


def _record(key: str, run: Run) -> Record:
    if isinstance(run, str):
        status, _, message = run.partition(": ")
        return Record(key, {}, status, message=message or None)  # type: ignore[arg-type]
    if isinstance(run, int):
        run = Outcome(N_TEST, n_correct=run)
    elif isinstance(run, float):
        run = Outcome(1, sum_squared_error=run)
    return Record(key, {}, "ok", run)
