"""An estimator gives the numbers of a suite's run with equal rows, order and seed."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch

from msda_bench.api import Dataset, DomainData, Embedding, InputSpec, Task, component
from msda_bench.data.files import LocalFiles
from msda_bench.data.splits import permutation
from msda_bench.engine.train import Trainer
from msda_bench.plugins import Entry, Registry, discover
from msda_bench.sklearn import DARN, M3SDA, MDMN, SRC, DARNRegressor, MSDAClassifier, cell
from msda_bench.testing.toy import OneLayer
from tests.builtin.suites import loaded
from tests.own import suite
from tests.strangers.teacher import Teacher

TRAIN, SEED = 40, 5
NAMES = ("1", "2", "7", "target")


@component
class Suited(Dataset):
    """The domains that a suite's run loads, with the names that an estimator gives them."""

    name = "arrays"
    domains = NAMES

    train: int = TRAIN
    regression: bool = False
    sparse: bool = False

    def sources(self):
        return {"target": NAMES[:-1]}

    @property
    def task(self):
        return Task("regression") if self.regression else Task("classification", 3)

    @property
    def input(self):
        return InputSpec((6,), sparse=self.sparse)

    def load(self, domain, files):
        place = NAMES.index(domain)
        generator = np.random.default_rng(place)
        x = (generator.normal(size=(100, 6)) + 0.3 * place).astype(np.float32)
        if self.sparse:
            x = x * (generator.random(x.shape) < 0.5)
        truth = x[:, 0] + x[:, 1] * x[:, 2]
        y = truth.astype(np.float32) if self.regression else np.digitize(truth, [-0.5, 0.7])
        return DomainData(scipy.sparse.csr_matrix(x) if self.sparse else x, y)


@component
class Embedded(OneLayer):
    """Frozen features with the width of the input vectors."""

    name = "embedded"

    def embedding(self, input):
        return Embedding("as they are", input.shape[0], lambda files: torch.nn.Identity())


STRANGERS = Entry("scheme", Teacher, "strangers", "0"), Entry("backbone", Embedded, "strangers", "0")


@pytest.fixture(autouse=True)
def _strangers(monkeypatch):
    """Installs a third-party scheme that carries an average of its weights, and a backbone."""
    found = Registry([*discover().entries, *STRANGERS])
    monkeypatch.setattr(cell, "discover", lambda: found)
    cell.registry.cache_clear()
    yield
    cell.registry.cache_clear()


def suite_record(folder, params, method, training):
    installed = (entry for entry in discover().entries if entry.kind != "dataset")
    registry = Registry([*installed, Entry("dataset", Suited, "tests", "0"), *STRANGERS])
    backbone = {"mlp": {"hidden": [16], "dropout": 0.2}}
    changes = {"seeds": [SEED], "targets": None, "backbone": backbone, "training": training, "methods": {"M": method}}
    (planned,) = loaded(Path(suite(folder, "arrays", params, **changes)), registry)[1].cells.values()
    (record,) = Trainer(registry, LocalFiles(), "cpu").train([planned])
    return record


def rows_of(dataset):
    """X, y and sample_domain for training, in the order of the suite's split, and the target's test rows."""
    files = LocalFiles()
    data = {name: dataset.load(name, files) for name in NAMES}
    orders = {name: permutation(100, "arrays", "target", SEED, name) for name in NAMES}
    stack = scipy.sparse.vstack if dataset.sparse else np.concatenate
    x = stack([data[name].x[orders[name][:TRAIN]] for name in NAMES])
    y = np.concatenate([data[name].y[orders[name][:TRAIN]] for name in NAMES])
    y[-TRAIN:] = -1
    test = orders["target"][TRAIN:]
    return x, y, np.repeat([1, 2, 7, -1], TRAIN), data["target"].x[test], data["target"].y[test]


CASES = {
    "DARN": (DARN(mu=0.1), {"discrepancy": "d_A", "mu": 0.1, "aggregator": {"sharpmax": {"gamma": 0.9}}}, {}),
    "SRC": (SRC(), {"scheme": "pooled"}, {"sparse": True}),
    "MDMN": (MDMN(mu=0.05), {"scheme": "mdmn", "mu": 0.05}, {"sparse": True}),
    "M3SDA": (M3SDA(), {"scheme": "m3sda", "mu": 0.0005}, {}),
    "DARN on numbers": (
        DARNRegressor(),
        {"discrepancy": "d_A", "mu": 0.01, "aggregator": {"sharpmax": {"gamma": 0.9}}},
        {"regression": True},
    ),
    "each domain standardised": (
        DARN(standardise="domain"),
        {"discrepancy": "d_A", "mu": 0.01, "aggregator": {"sharpmax": {"gamma": 0.9}}, "standardise": "domain"},
        {},
    ),
    "words scaled": (SRC(standardise="domain"), {"scheme": "pooled", "standardise": "domain"}, {"sparse": True}),
    "a stranger's": (MSDAClassifier(scheme={"teacher": {"decay": 0.8}}), {"scheme": {"teacher": {"decay": 0.8}}}, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_an_estimator_gives_the_numbers_of_a_suites_run(name, tmp_path):
    estimator, method, params = CASES[name]
    dataset = Suited(**params)
    more = {"schedule": "cosine", "average": {"ema": 0.5}}
    record = suite_record(tmp_path, params, method, {"epochs": 3, "batch": 8, "optimizer": "adam", **more})
    estimator.set_params(hidden=(16,), dropout=0.2, epochs=3, batch=8, training=more, random_state=SEED)
    x, y, domain, x_test, y_test = rows_of(dataset)
    estimator.fit(x, y, sample_domain=domain)
    predicted = estimator.predict(x_test)
    if dataset.regression:
        errors = (predicted.astype(float) - y_test.astype(float)) ** 2
        assert errors.sum() == pytest.approx(record.outcome.sum_squared_error, rel=1e-12)
    else:
        assert (predicted == y_test).sum() == record.outcome.n_correct
        assert record.outcome.n_correct > record.outcome.n_test / 3
    weights = record.curves.weights[-1]
    own = [estimator.weights_.sum()] if len(weights) == 1 else estimator.weights_
    np.testing.assert_allclose(own, weights, rtol=1e-5)


@pytest.mark.parametrize("name", ["M3SDA", "a stranger's"])
def test_a_copy_predicts_identically_and_holds_no_training_rows(name):
    estimator = CASES[name][0].set_params(hidden=(16,), epochs=2, batch=8, training=None, random_state=0)
    x, y, domain, x_test, _ = rows_of(Suited())
    found = estimator.fit(x, y, sample_domain=domain).predict_proba(x_test)
    sizes = []
    for times in (1, 20):
        estimator.fit(np.tile(x, (times, 1)), np.tile(y, times), sample_domain=np.tile(domain, times))
        sizes.append(len(pickle.dumps(estimator)))
    assert sizes[0] == pytest.approx(sizes[1], rel=0.01)
    estimator.fit(x, y, sample_domain=domain)
    for copied in (copy.deepcopy(estimator), pickle.loads(pickle.dumps(estimator))):  # noqa: S301
        assert (copied.predict_proba(x_test) == found).all()


def test_a_backbone_with_frozen_features_is_refused_in_one_line(rows):
    with pytest.raises(ValueError, match="backbone: embedded computes frozen features, which only suites support"):
        SRC(backbone="embedded").fit(rows.X, rows.y, sample_domain=rows.domain)
