"""Keys of cells: everything that changes numbers, and nothing else; a cell restores its components as planned."""

import re
from dataclasses import field, fields, replace
from typing import Annotated, ClassVar

import pytest

from msda_bench.api import AddedLater, Aggregator, Positive, component
from msda_bench.errors import PluginError
from msda_bench.plugins import Entry, Registry
from msda_bench.suite.choice import make, make_planned
from msda_bench.suite.protocol import Splitting, TrainingConfig
from msda_bench.suite.run_spec import ComponentSpec, RunSpec, canonical_json
from tests.suite.conftest import HERE, points, toy

TRAINING = {"epochs": 2, "batch": 20, "optimizer": {"adadelta": {"lr": 1.0}}, "epoch": "scheme"}


def ref(kind, name, **params):
    return ComponentSpec(kind, name, 1, "toys", params)


CELL = RunSpec(
    dataset=ref("dataset", "amazon", train=2000, test=None),
    fingerprint="f" * 64,
    target="books",
    sources=("dvd", "kitchen"),
    backbone=ref("backbone", "mlp", hidden=[8, 4], dropout=0.5),
    scheme=ref("scheme", "adapt"),
    discrepancy=ref("discrepancy", "d_A", sign="text"),
    aggregator=ref("aggregator", "sharpmax", gamma=0.9),
    mu=0.01,
    training=TrainingConfig.model_validate(TRAINING),
    validators=(ref("validator", "source_accuracy"),),
    seed=0,
)
OTHERS = {
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
        TrainingConfig.model_validate(TRAINING | change)
        for change in (
            *({"epochs": 3}, {"batch": 21}, {"steps": 5}, {"epochs": None, "steps": 5}),
            *({"precision": "bf16"}, {"epoch": "equal"}, {"warmup": 0.1}, {"clip": 1.0}),
            *({"optimizer": name} for name in ("adam", "adamw", "sgd")),
            {"optimizer": {"adam": {"weight_decay": 0.1}}},
            {"optimizer": {"sgd": {"momentum": 0.5}}},
            {"optimizer": {"sgd": {"momentum": 0.5, "nesterov": True}}},
            {"optimizer": {"adadelta": {"lr": 0.5}}},
            {"optimizer": {"adadelta": {"weight_decay": 0.5}}},
            *({"schedule": schedule} for schedule in ("polynomial", {"cosine": {"to": 0.0}}, {"cosine": {"to": 0.1}})),
            *({"lr_factors": {part: 10.0}} for part in ("trunk", "features", "predictor", "critic")),
            *({"average": average} for average in ({"ema": 0.99}, {"over": "last_epoch"})),
        )
    ],
    "validators": [(), (ref("validator", "source_risk"),)],
    "seed": [1],
    "split_sources": [Splitting(clusters=4), Splitting(clusters=8), Splitting(clusters=4, by="chance")],
    "labelled_target": [50, 51],
    "metrics": [(ref("metric", "auc"),)],
    "prior_correction": ["em"],
    "standardise_labels": [True],
    "standardise": ["domain"],
}


def test_every_field_changes_the_key():
    assert set(OTHERS) == {field.name for field in fields(RunSpec)} - {"keep"}
    keys = [replace(CELL, **{name: value}).key for name, values in OTHERS.items() for value in values]
    assert len({CELL.key, *keys}) == len(keys) + 1
    assert replace(CELL, keep=("predictions",)).key == CELL.key


def test_keys_do_not_depend_on_how_the_suite_is_written(expanded, good):
    other = (
        good.replace("name: good", "name: other\ndescription: the same in other words")
        .replace("{hidden: [8, 4], dropout: 0.5}", "{dropout: 5e-1, hidden: [0x8, 4]}")
        .replace("lr: 1.0}}", "eps: 0.000001, lr: 1, weight_decay: 0}}, DEFAULTS")
        .replace("DEFAULTS", "schedule: none, warmup: 0, average: null, lr_factors: {critic: 1}, clip: null, LATER")
        .replace("LATER", "precision: float32")
        .replace(
            "DARN: {discrepancy: d_A, mu: 0.01", "Ours: {mu: 1.0e-2, scheme: adapt, discrepancy: {d_A: {sign: text}}"
        )
        .replace("SRC: {scheme: pooled}", "SRC: {aggregator: {uniform: }, discrepancy: none, mu: -0.0, SCHEME}")
        .replace("SCHEME", "scheme: {pooled: {}}, reference: true")
        .replace("{train: 2000}", "{test: all, train: 2000}")
        .replace("seeds: 2", "seeds: [0, 1]")
        .replace("alpha: 0.05", "alpha: 0.01")
    )
    assert list(expanded(other).cells) == list(expanded(good).cells)


LATER = Annotated[float, AddedLater()]


@component
class Before(Aggregator):
    """As it was first published."""

    name = "mean"
    gamma: Positive = 1.0

    def __call__(self, risks, gaps, mu, state):
        raise NotImplementedError


@component
class After(Before):
    """A later version with more parameters, of which `way` has a default that changes the numbers."""

    name = "mean"
    stacked: ClassVar[tuple[str, ...]] = ("shift",)
    shift: LATER = 0.0
    names: Annotated[tuple[str, ...], AddedLater()] = field(default_factory=tuple)
    way: Annotated[str, AddedLater("old")] = "new"


def only(cls):
    return Registry([Entry(cls.kind, cls, "tests", "1")])


@pytest.mark.parametrize(
    ("params", "kept"),
    [
        ({"way": "old"}, {}),
        ({"way": "old", "gamma": 3.0, "shift": 0.0, "names": []}, {"gamma": 3.0}),
        ({}, {"way": "new"}),
        ({"way": "old", "shift": 1.0}, {"shift": 1.0}),
        ({"way": "old", "names": ["x"]}, {"names": ["x"]}),
    ],
)
def test_a_later_parameter_is_in_the_key_unless_it_gives_the_numbers_of_before(params, kept):
    before, after = make(only(Before), "aggregator", "mean", {}), make(only(After), "aggregator", "mean", params)
    assert after.spec == replace(before.spec, params=before.spec.params | kept)
    assert make_planned(only(After), after.spec) == after.component


def test_a_later_parameter_is_in_a_fingerprint_unless_at_its_default_and_needs_one():
    noisy = component(type("Noisy", (points("points", "a b"),), {"__annotations__": {"noise": LATER}, "noise": 0.0}))
    assert noisy().fingerprint() == points("points", "a b")().fingerprint() != noisy(noise=1.0).fingerprint()
    with pytest.raises(TypeError, match=r"Without\.level is marked as AddedLater and so needs a default"):
        toy(Before, "Without", __annotations__={"level": LATER})


MLP = ComponentSpec("backbone", "mlp", 1, "msda-bench", {"hidden": [8, 4], "dropout": 0.5})


@pytest.mark.parametrize(
    ("planned", "line"),
    [
        (replace(MLP, name="mlpp"), "unknown backbone 'mlpp' (did you mean 'mlp'?)"),
        (
            replace(MLP, version=2),
            f"backbone 'mlp' was planned at version 2, but {HERE} provides version 1; run the suite again to update",
        ),
        (
            replace(MLP, distribution="others"),
            f"backbone 'mlp' was planned from others, but {HERE} provides it now; install others instead",
        ),
        (
            replace(MLP, params={"dropout": 2.0, "depth": 1}),
            "backbone 'mlp': dropout: must be less than 1, not 2.0; depth: unknown parameter of mlp (known: hidden,",
        ),
        (
            ComponentSpec("aggregator", "picky", 1, "toys", {"size": 13}),
            "aggregator 'picky' of toys 1.0 cannot be made: tests/suite/conftest.py:N: RuntimeError: bad luck",
        ),
    ],
)
def test_an_outdated_reference_is_refused(registry, planned, line):
    with pytest.raises(PluginError) as caught:
        make_planned(registry, planned)
    (text,) = caught.value.lines
    assert re.sub("py:[0-9]+", "py:N", text).startswith(line)


def test_canonical_json_tells_numbers_text_and_nothing_apart():
    values = [1, 1.0, "1", True, None, [1], {"1": 1}, "é", {"a": 1, "b": 2}]
    assert len({canonical_json(value) for value in values}) == len(values)
    assert canonical_json({"b": "é", "a": [1, 0.1]}) == '{"a":[1,0.1],"b":"é"}'
