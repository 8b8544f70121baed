"""A toy world for the engine: three domains, sparse or dense, that a small network learns quickly."""

import functools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import nn

from msda_bench.api import (
    Aggregate,
    Aggregator,
    Backbone,
    Dataset,
    Discrepancy,
    DomainData,
    InputSpec,
    Network,
    Scheme,
    Size,
    Step,
    Task,
    Validator,
    component,
)
from msda_bench.data import LocalFiles
from msda_bench.engine.model import Components
from msda_bench.engine.prepare import Preparer
from msda_bench.engine.runs import Run
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.suite.protocol import TrainingConfig
from msda_bench.suite.run_spec import ComponentSpec, RunSpec

WIDTH = 30
CPU = torch.device("cpu")


@component
class Toy(Dataset):
    """Bags of thirty words in three domains."""

    name = "toy"
    train: Size = 60
    sparse: bool = True
    regression: bool = False
    poison: str | None = None
    spared: tuple[int, ...] = ()

    @property
    def domains(self):
        return ("a", "b", "c")

    @property
    def task(self):
        return Task("regression") if self.regression else Task("classification", 2)

    @property
    def input(self):
        return InputSpec((WIDTH,), sparse=self.sparse)

    def load(self, domain, files):
        place = self.domains.index(domain)
        generator = np.random.Generator(np.random.Philox(key=place))
        dense = (generator.random((150, WIDTH)) < 0.3).astype(np.float32) * (1 + place)
        truth = dense[:, :5].sum(1) - dense[:, 5:10].sum(1)
        y = truth.astype(np.float32) if self.regression else (truth > 0).astype(np.int64)
        if domain == self.poison:
            poisoned = np.setdiff1d(np.arange(len(y)), self.spared)
            y[poisoned] = -y[poisoned] if self.regression else 1 - y[poisoned]
        return DomainData(scipy.sparse.csr_matrix(dense) if self.sparse else dense, y)


METHODS = {
    "SRC": ("pooled", "none", "uniform", {}),
    "TAR": ("target_only", None, None, {}),
    "DANN": ("pooled", "d_A", "uniform", {}),
    "MDAN": ("adapt", "d_A", "logsumexp", {"gamma": 10.0}),
    "MDAN-hard": ("adapt", "d_A", "hardmax", {}),
    "MDMN": ("mdmn", None, None, {}),
    "DARN": ("adapt", "d_A", "sharpmax", {"gamma": 0.9}),
    "MMD": ("adapt", "mmd", "sharpmax", {}),
    "SPECTRAL": ("adapt", "spectral_l2", "sharpmax", {}),
    "SWD": ("adapt", "sliced_wasserstein", "group_dro", {}),
    "WDGRL": ("alternate", "wasserstein", "softmax", {}),
    "CDAN": ("cdan", "d_A", "wadn", {}),
    "MCD": ("mcd", None, None, {}),
}
POOLED = {"pooled", "cdan", "target_only"}
OPTIMIZERS = {
    "sgd": {"sgd": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}},
    "adam": {"adam": {"lr": 0.01, "weight_decay": 0.1}},
    "adamw": {"adamw": {"lr": 0.003, "weight_decay": 3.0}},
    "adadelta": {"adadelta": {"weight_decay": 0.1}},
}


@functools.cache
def installed(*strangers):
    """The built-in components, the toy, and classes of a distribution `stranger`."""
    more = [Entry(cls.kind, cls, "stranger", "1.2") for cls in strangers]
    return Registry([*discover().entries, Entry("dataset", Toy, "tests", "0"), *more])


def aggregator(name, rule, **facts):
    """A third-party aggregator; `rule` takes risks and mu, and gives an objective and weights."""

    def call(self, risks, gaps, mu, state):
        return Aggregate(*rule(risks, mu), state)

    return component(type(name, (Aggregator,), {"name": name, "__call__": call, **facts}))


def backbone(name, network):
    """A third-party backbone; `network` takes the numbers of inputs and outputs, and gives a `Network`'s parts."""

    def build(self, task, input, files=None):
        return Network(*network(input.shape[0], task.outputs))

    return component(type(name, (Backbone,), {"name": name, "build": build}))


def validator(name, score):
    """A third-party validator; `score` takes the view."""
    return component(type(name, (Validator,), {"name": name, "score": lambda self, view: score(view)}))


class Gaps(nn.Module):
    def __init__(self, gaps):
        super().__init__()
        self.forward = gaps


def discrepancy(name, gaps):
    """A third-party discrepancy; `gaps` takes the features of sources and target."""
    return component(type(name, (Discrepancy,), {"name": name, "build": lambda self, feature_dim, k: Gaps(gaps)}))


class OwnStep(Scheme):
    """A scheme without a discrepancy, whose step is the mean risk."""

    uses_discrepancy = False
    uses_mu = False

    def step(self, parts, batch, state, phase):
        risks = parts.forward(batch).risks
        return Step(risks.mean(), risks)


def ref(kind, name, params=None):
    if name is None:
        return None
    entry = installed().entry(kind, name)
    made = entry.create(params or {})
    return ComponentSpec(kind, name, made.version, entry.distribution, made.params())


def make_cell(
    method="DARN",
    *,
    dataset=None,
    backbone=("mlp", {"hidden": [16, 8], "dropout": 0.3}),
    seed=0,
    mu=0.1,
    target="c",
    split_sources=None,
    labelled_target=0,
    **training,
):
    """The cell of a method on the toy; further options are those of the protocol."""
    scheme, discrepancy, aggregator, params = METHODS[method]
    validator = "source_risk" if (dataset or {}).get("regression") else "source_accuracy"
    usual = {"epochs": 2, "batch": 10, "optimizer": "adadelta", "epoch": "scheme"}
    return RunSpec(
        dataset=ref("dataset", "toy", dataset),
        fingerprint="none",
        target=target,
        sources=tuple(domain for domain in ("a", "b", "c") if domain != target),
        backbone=ref("backbone", *backbone),
        scheme=ref("scheme", scheme),
        discrepancy=ref("discrepancy", discrepancy),
        aggregator=ref("aggregator", aggregator, params),
        mu=mu,
        training=TrainingConfig.model_validate(usual | training),
        validators=(ref("validator", validator),),
        seed=seed,
        split_sources=split_sources,
        labelled_target=labelled_target,
    )


def at_seeds(cell, count=2):
    """The cell at its first seeds."""
    return [replace(cell, seed=seed) for seed in range(count)]


def swapped(cell, cls, **params):
    """The cell with a component of a stranger; a validator is asked before its own."""
    made = ComponentSpec(cls.kind, cls.name, 1, "stranger", cls(**params).params())
    if cls.kind == "validator":
        return replace(cell, validators=(made, *cell.validators))
    alone = cls.kind == "scheme" and not cls.uses_discrepancy
    return replace(cell, **{cls.kind: made}, **({"discrepancy": None, "aggregator": None} if alone else {}))


def trainer(*strangers, stack=1, device="cpu"):
    return Trainer(installed(*strangers), LocalFiles(), device, stack)


def train(cells, *strangers, **options):
    """The records of the cells, in their order."""
    records = {record.key: record for record in trainer(*strangers, **options).train(cells)}
    return [records[cell.key] for cell in cells]


def stacked(cells, *strangers):
    """The records of the cells, trained in a single stack."""
    records = train(cells, *strangers, stack=len(cells))
    assert {record.provenance["stack"] for record in records} == {len(cells)}
    return records


def result(record):
    """The parts of a record that are results."""
    return record.status, record.outcome, record.curves, record.bound, record.validation


def close(record, other):
    """The runs agree up to rounding, which few steps leave small: training is chaotic."""
    assert record.status == other.status == "ok"
    assert record.curves.groups == other.curves.groups
    for name in ("risks", "gaps", "weights"):
        mine, theirs = (torch.tensor(getattr(run.curves, name)) for run in (record, other))
        torch.testing.assert_close(mine, theirs, rtol=2e-4, atol=2e-5)
    assert record.bound == pytest.approx(other.bound, rel=1e-4)
    assert record.validation == pytest.approx(other.validation, abs=0.02)


def prepare(cell, dataset):
    return Preparer(LocalFiles(), CPU).prepare(dataset, cell)


def run_of(cell, *strangers):
    components = Components.of(cell, installed(*strangers))
    return Run(cell, components, prepare(cell, components.dataset))


def train_with_weights(cell, *strangers):
    """The record's parts, and the trained weights as bytes."""
    (record,) = train([replace(cell, keep=("weights",))], *strangers)
    return {**vars(record), "weights": record.arrays["weights"]}
