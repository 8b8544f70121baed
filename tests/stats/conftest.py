"""One experiment from lists of scores."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from msda_bench.stats.scores import Scores, collect_scores
from msda_bench.store.record import Outcome, Record
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell

N_TEST = 200
Run = int | float | str | Outcome | None
"""Correct of 200, a squared error, a status with a message, an outcome, or None for a missing run."""


@dataclass(frozen=True)
class Table:
    plan: Plan
    records: dict[str, Record]

    @property
    def scores(self) -> Scores:
        return collect_scores(self.plan, self.records)[0]


@pytest.fixture
def table() -> Callable[..., Table]:
    """`table({method: {target: [run of seed 0, run of seed 1, ...]}})`; methods named `ref...` are references."""

    def make(
        runs: Mapping[str, Mapping[str, Sequence[Run]]], task: str = "classification", alpha: float = 0.05
    ) -> Table:
        targets = tuple(next(iter(runs.values())))
        seeds = tuple(range(len(next(iter(next(iter(runs.values())).values())))))
        methods = tuple(Method(name, name.startswith("ref"), "recipe", ()) for name in runs)
        experiment = Experiment("table", "toy", task, targets, methods, seeds, alpha)
        cells, records = [], {}
        for name, target, seed in ((name, target, seed) for name in runs for target in targets for seed in seeds):
            key = hashlib.sha256(f"{name} {target} {seed}".encode()).hexdigest()
            cells.append(PlannedCell("table", name, target, seed, key))
            if (run := runs[name][target][seed]) is not None:
                records[key] = _record(key, run)
        return Table(Plan("suite", (experiment,), tuple(cells)), records)

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
