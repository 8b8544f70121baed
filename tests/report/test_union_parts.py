"""What two folders must share, and what a method may have of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from msda_bench.report.union_parts import Part, other_definition, other_recipe, part_of
from msda_bench.suite.plan import Experiment, Method

METHODS = tuple(Method(name, reference=False, recipe="", distributions=()) for name in ("SRC", "MCD"))
TABLE = Experiment("e", "data", "classification", ("t",), METHODS, (0,))


def part(label: str, *methods: str, batch: int = 20, lr: float = 2e-4) -> Part:
    """A folder with records of some methods; MCD has an optimiser of its own."""
    optimizer = {"SRC": ("adadelta", {"lr": 1.0}), "MCD": ("adam", {"lr": lr})}
    records = {}
    for name in methods:
        chosen, params = optimizer[name]
        training = {"epochs": 1, "batch": batch, "optimizer": chosen, "optimizer_params": params}
        records[name] = SimpleNamespace(cell={"training": training, "sources": ["s"], "dataset": "data"})
    cells = [SimpleNamespace(experiment="e", method=name, target="t", seed=0, key=name) for name in ("SRC", "MCD")]
    folder: Any = SimpleNamespace(plan=SimpleNamespace(cells=cells), records=records)
    return part_of(label, folder, TABLE)


def test_a_methods_own_optimiser_is_no_other_experiment() -> None:
    assert other_definition(part("A", "SRC"), part("B", "MCD")) == ""
    assert "batch" in other_definition(part("A", "SRC"), part("B", "MCD", batch=10))


def test_it_is_another_method() -> None:
    one, other = part("A", "SRC", "MCD"), part("B", "SRC", "MCD", lr=1e-3)
    assert other_definition(one, other) == other_recipe("SRC")(one, other) == ""
    assert "lr" in other_recipe("MCD")(one, other)
