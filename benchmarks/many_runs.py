"""A plan of many runs and their records, made up."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from msda_bench.store import Outcome, Record, Store
from msda_bench.store.record import Curves
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell

_EPOCHS, _SOURCES = 50, ("first", "second", "third")
_PROVENANCE = {
    "device": "cpu",
    "device_name": "x86_64",
    "distributions": {"msda-bench": "0.1.0", "some-stranger": "2.0"},
    "numba": "0.61",
    "numpy": "2.4.0",
    "platform": "Linux-6.1-x86_64-with-glibc2.36",
    "python": "3.11.7",
    "stack": 1,
    "torch": "2.11.0+cpu",
}


class Shape(NamedTuple):
    """How many there are of each; the more methods, the more pairs; the more seeds, the dearer each."""

    methods: int
    targets: int
    seeds: int

    def __str__(self) -> str:
        return f"{self.methods} methods, {self.targets} targets, {self.seeds} seeds"


LARGE = Shape(20, 50, 200)
"""Of 200,000 runs."""
SHAPES = (Shape(10, 20, 100), Shape(10, 10, 200), Shape(5, 4, 1000), Shape(2, 1, 10_000), Shape(50, 4, 100))
"""Of 20,000 runs."""


def many_runs(shape: Shape) -> tuple[Plan, Iterator[Record]]:
    """Accuracies of 2,000 test examples, each method a little better than the one before, with ties.

    Each record has the curves of 50 epochs and three sources.
    """
    rows = tuple(
        Method(f"m{number}", reference=False, recipe="made", distributions=()) for number in range(shape.methods)
    )
    columns, seeds = tuple(f"t{number}" for number in range(shape.targets)), tuple(range(shape.seeds))
    table = Experiment("made", "made", "classification", columns, rows, seeds, baseline="m0")
    cells = tuple(
        PlannedCell("made", method.name, target, seed, sha256(f"{method.name} {target} {seed}".encode()).hexdigest())
        for method, target, seed in product(rows, columns, seeds)
    )
    return Plan("made", (table,), cells), _records(cells)


def _records(cells: Iterable[PlannedCell]) -> Iterator[Record]:
    draw = random.Random(0)  # noqa: S311
    pool = [_curves(draw) for _ in range(50)]
    for cell in cells:
        outcome = Outcome(2000, n_correct=1500 + 3 * int(cell.method[1:]) + draw.randrange(100))
        yield Record(
            cell.key,
            {},
            "ok",
            outcome,
            curves=draw.choice(pool),
            timing={"train": round(draw.uniform(1, 40), 4), "steps": 5000},
            validation={name: round(draw.random(), 6) for name in ("density_ratio", "source_accuracy")},
            provenance=_PROVENANCE,
        )


def write_folder(folder: Path, shape: Shape) -> None:
    """Writes them as a result folder, without the disk's waits, which are measured elsewhere."""
    plan, records = many_runs(shape)
    with patch("os.fsync"):
        store = Store.create(folder)
        store.write_plan(plan)
        for record in records:
            store.publish(record)
        store.seal()


def _curves(draw: random.Random) -> Curves:
    risks, gaps, weights = (
        [[round(draw.random(), 6) for _ in _SOURCES] for _ in range(_EPOCHS)] for _ in ("risks", "gaps", "weights")
    )
    return Curves([[source] for source in _SOURCES], risks, gaps, weights)
