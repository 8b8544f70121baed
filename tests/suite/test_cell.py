from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.suite.cell import Cell, Ref, Splitting, Training, canonical_json
from msda_bench.suite.expand import expand
from msda_bench.suite.protocol import Protocol

GOLDEN = "96d4ffa8d4f518b6920111a49c3f10625ccf973c1d4d100731a12ebb6eee8bbf"


def ref(kind: str, name: str, **params: Any) -> Ref:
    return Ref(kind, name, 1, "toys", params)


CELL = Cell(
    dataset=ref("dataset", "amazon", train=2000, test=None),
    fingerprint="f" * 64,
    target="books",
    sources=("dvd", "kitchen"),
    backbone=ref("backbone", "mlp", hidden=[8, 4], dropout=0.5),
    scheme=ref("scheme", "adapt"),
    discrepancy=ref("discrepancy", "d_A", sign="text"),
    aggregator=ref("aggregator", "sharpmax", gamma=0.9),
    mu=0.01,
    training=Training(2, 20, "adadelta", {"lr": 1.0, "rho": 0.9, "eps": 1e-6}),
    validators=(ref("validator", "source_accuracy"),),
    seed=0,
)
OTHERS: dict[str, list[Any]] = {
    "dataset": [ref("dataset", "amazon", train=1999, test=None), replace(CELL.dataset, version=2)],
    "fingerprint": ["e" * 64],
    "target": ["electronics"],
    "sources": [("dvd",), ("kitchen", "dvd")],
    "backbone": [replace(CELL.backbone, distribution="rival"), ref("backbone", "mlp", hidden=[8], dropout=0.5)],
    "scheme": [ref("scheme", "pooled")],
    "discrepancy": [None, ref("discrepancy", "d_A", sign="code")],
    "aggregator": [None, ref("aggregator", "sharpmax", gamma=0.8)],
    "mu": [0.02, 0.0],
    "training": [
        replace(CELL.training, epochs=3),
        replace(CELL.training, batch=21),
        replace(CELL.training, optimizer="adam"),
        replace(CELL.training, optimizer_params={"lr": 0.5, "rho": 0.9, "eps": 1e-6}),
        replace(CELL.training, steps=5),
        replace(CELL.training, epochs=None, steps=5),
        replace(CELL.training, precision="bf16"),
        replace(CELL.training, epoch="equal"),
        replace(CELL.training, schedule="cosine", schedule_params={"to": 0.0}),
        replace(CELL.training, schedule="cosine", schedule_params={"to": 0.1}),
        replace(CELL.training, warmup=0.1),
        replace(CELL.training, clip=1.0),
        replace(CELL.training, lr_factors={"critic": 10.0}),
        replace(CELL.training, average={"ema": 0.99}),
    ],
    "validators": [(), (ref("validator", "source_risk"),)],
    "seed": [1],
    "split_sources": [Splitting(4), Splitting(8), Splitting(4, "chance")],
    "labelled_target": [50, 51],
    "metrics": [(ref("metric", "auc"),)],
}


def test_the_key_of_a_cell_never_changes_by_accident():
    # A change here orphans every stored result: raise ENGINE_VERSION or a component's version instead.
    assert CELL.key == GOLDEN


def test_every_field_changes_the_key():
    assert set(OTHERS) == {field.name for field in fields(Cell)} - {"keep"}
    keys = [replace(CELL, **{name: value}).key for name, values in OTHERS.items() for value in values]
    assert len({CELL.key, *keys}) == len(keys) + 1
    assert replace(CELL, keep=("predictions",)).key == CELL.key


def test_suite_and_cell_use_equal_names_for_a_protocol():
    kept = {each.name for each in fields(Training)}
    assert kept == set(Protocol.model_fields) | {"optimizer_params", "schedule_params"}


def test_a_protocol_without_additions_keeps_its_key(load, registry, good):
    """Writing out all defaults of the schemes' own rule gives the keys of stored results."""
    plain = good.replace("{epochs: 2,", "{epochs: 2, epoch: scheme,")
    full = plain.replace("{lr: 1.0}}", "{lr: 1.0, weight_decay: 0}}, schedule: none, warmup: 0, average: null")
    full = full.replace("schedule: none", "lr_factors: {critic: 1}, clip: null, schedule: none")
    cells = [list(expand(load(text), registry).cells.values()) for text in (plain, full, good)]
    assert [cell.key for cell in cells[0]] == [cell.key for cell in cells[1]]
    assert set(cells[0][0].to_json()["training"]) == {"epochs", "batch", "optimizer", "optimizer_params", "steps"}
    assert {cell.to_json()["training"]["epoch"] for cell in cells[2]} == {"equal"}


def test_a_protocol_in_full_reaches_the_cell(load, registry, good):
    more = "schedule: {polynomial: {b: 0.5}}, warmup: 0.1, clip: 5, lr_factors: {critic: 10}, average: {ema: 0.99}"
    text = good.replace("epochs: 2,", f"steps: 300, {more},").replace("{adadelta: {lr: 1.0}}", "{adamw: {lr: 0.1}}")
    (training, *_) = [cell.training for cell in expand(load(text), registry).cells.values()]
    adamw = {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01}
    assert training == Training(
        *(None, 20, "adamw", adamw, 300, "float32", "equal", "polynomial", {"a": 10.0, "b": 0.5}, 0.1, 5.0),
        lr_factors={"critic": 10.0},
        average={"ema": 0.99},
    )


def test_the_order_of_parameters_does_not_change_the_key():
    backwards = Ref("dataset", "amazon", 1, "toys", dict(reversed(CELL.dataset.params.items())))
    training = replace(CELL.training, optimizer_params=dict(reversed(CELL.training.optimizer_params.items())))
    assert replace(CELL, dataset=backwards, training=training).key == CELL.key


@pytest.mark.parametrize("seed", ["0", "1", "12345"])
def test_pythons_hash_seed_does_not_change_the_key(seed):
    code = (
        "from msda_bench.suite.cell import *; r = lambda kind: Ref(kind, 'n', 1, 'd', {c: 1.5 for c in 'zyxabc'});"
        "print(Cell(r('dataset'), 'f', 't', ('s',), r('backbone'), r('scheme'), None, None, 0.1,"
        " Training(1, 2, 'adam', {'lr': 0.1, 'eps': 1e-8}), (r('validator'),), 3).key)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "68fdf8613c1810eb1450405cc3ef57d7eb589d05e5c0c77466e8af26c00de934"


def test_numbers_that_json_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        _ = replace(CELL, mu=float("nan")).key


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(json_values, json_values)
def test_canonical_json_is_equal_exactly_for_equal_values(left, right):
    def typed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: typed(item) for key, item in value.items()}
        return [typed(item) for item in value] if isinstance(value, list) else (type(value), repr(value))

    assert (canonical_json(left) == canonical_json(right)) == (typed(left) == typed(right))
