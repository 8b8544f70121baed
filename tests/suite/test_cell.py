from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.suite.cell import Cell, Ref, canonical_json
from msda_bench.suite.expand import expand
from msda_bench.suite.protocol import Protocol, Splitting

TRAINING = {"epochs": 2, "batch": 20, "optimizer": {"adadelta": {"lr": 1.0}}, "epoch": "scheme"}
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
    training=Protocol.model_validate(TRAINING),
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
        Protocol.model_validate(TRAINING | change)
        for change in (
            {"epochs": 3},
            {"batch": 21},
            {"optimizer": "adam"},
            {"optimizer": {"adam": {"weight_decay": 0.1}}},
            {"optimizer": "adamw"},
            {"optimizer": "sgd"},
            {"optimizer": {"sgd": {"momentum": 0.5}}},
            {"optimizer": {"sgd": {"momentum": 0.5, "nesterov": True}}},
            {"optimizer": {"adadelta": {"lr": 0.5}}},
            {"optimizer": {"adadelta": {"weight_decay": 0.5}}},
            {"steps": 5},
            {"epochs": None, "steps": 5},
            {"precision": "bf16"},
            {"epoch": "equal"},
            {"schedule": "step"},
            {"schedule": {"cosine": {"to": 0.0}}},
            {"schedule": {"cosine": {"to": 0.1}}},
            {"warmup": 0.1},
            {"clip": 1.0},
            {"lr_factors": {"critic": 10.0}},
            {"lr_factors": {"trunk": 10.0}},
            {"average": {"ema": 0.99}},
            {"average": {"over": "last_epoch"}},
        )
    ],
    "validators": [(), (ref("validator", "source_risk"),)],
    "seed": [1],
    "split_sources": [Splitting(clusters=4), Splitting(clusters=8), Splitting(clusters=4, by="chance")],
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
    (cell, *_) = expand(load(text), registry).cells.values()
    assert cell.to_json()["training"] == {
        "epochs": None, "batch": 20, "steps": 300, "epoch": "equal", "warmup": 0.1, "clip": 5.0,
        "optimizer": "adamw",
        "optimizer_params": {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01},
        "schedule": "polynomial", "schedule_params": {"a": 10.0, "b": 0.5},
        "lr_factors": {"critic": 10.0}, "average": {"ema": 0.99},
    }  # fmt: skip


def test_pythons_hash_seed_does_not_change_the_key():
    code = (
        "from msda_bench.suite.cell import *; from msda_bench.suite.protocol import *;"
        "r = lambda kind: Ref(kind, 'n', 1, 'd', {c: 1.5 for c in 'zyxabc'});"
        "print(Cell(r('dataset'), 'f', 't', ('s',), r('backbone'), r('scheme'), None, None, 0.1,"
        " Protocol(epochs=1, batch=2, optimizer=Optimizer(adam=Adam())), (r('validator'),), 3).key)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "bdb2f52d7eeccbd37cdf78a65466f5276164037e217db8749eff8f0eb0ca91d5"


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
