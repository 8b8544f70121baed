"""A plan of many runs and their records, made up."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

from msda_bench.store.log import SEALED, members
from msda_bench.store.record import Curves, Outcome, Record, encode
from msda_bench.store.store import Store
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


def many_runs(shape: Shape) -> tuple[Plan, Mapping[str, Record]]:
    """Accuracies of 2,000 test examples; each method a little better than the one before, with ties."""
    rows = tuple(
        Method(f"m{number}", reference=False, recipe="made", distributions=()) for number in range(shape.methods)
    )
    columns, seeds = tuple(f"t{number}" for number in range(shape.targets)), tuple(range(shape.seeds))
    table = Experiment("made", "made", "classification", columns, rows, seeds, baseline="m0")
    draw = random.Random(0)  # noqa: S311
    cells, records = [], {}
    for (place, method), target, seed in product(enumerate(rows), columns, seeds):
        key = hashlib.sha256(f"{method.name} {target} {seed}".encode()).hexdigest()
        cells.append(PlannedCell(table.name, method.name, target, seed, key))
        records[key] = Record(key, {}, "ok", Outcome(2000, n_correct=1500 + 3 * place + draw.randrange(100)))
    return Plan("made", (table,), tuple(cells)), records


def write_folder(folder: Path, shape: Shape) -> None:
    """Writes them as a result folder, each record with the curves of 50 epochs and three sources."""
    plan, records = many_runs(shape)
    store = Store.create(folder)
    store.write_plan(plan)
    draw = random.Random(1)  # noqa: S311
    pool = [_curves(draw) for _ in range(50)]
    made = list[bytes]()
    for record in records.values():
        timing = {"train": round(draw.uniform(1, 40), 4), "steps": 5000}
        validation = {name: round(draw.random(), 6) for name in ("density_ratio", "source_accuracy")}
        full = replace(record, curves=draw.choice(pool), timing=timing, validation=validation, provenance=_PROVENANCE)
        made.append(encode(full))
    # Not published: the disk's waits are measured elsewhere.
    (folder / SEALED).write_bytes(b"".join(members(made)))


def _curves(draw: random.Random) -> Curves:
    risks, gaps, weights = (
        [[round(draw.random(), 6) for _ in _SOURCES] for _ in range(_EPOCHS)] for _ in ("risks", "gaps", "weights")
    )
    return Curves([[source] for source in _SOURCES], risks, gaps, weights)
