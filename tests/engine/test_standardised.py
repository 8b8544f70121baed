"""`standardise: domain` of a method: each domain by its own training rows, on the network and draws of every method."""

import json
from dataclasses import replace

import numpy as np
import pytest

import msda_bench as mb
from msda_bench.api import Dataset, DomainData, InputSpec, Task, component
from msda_bench.cli.main import main
from msda_bench.engine import tensors
from msda_bench_builtin.datasets import Table
from tests.engine.conftest import make_cell, prepare, ref, train, train_with_weights
from tests.own import refusal, results, suite

ROWS = 60
DOMAINS = ("a", "b", "t")
SITE = np.repeat(DOMAINS, ROWS)
DOMAIN = {"standardise": "domain"}
METHODS = {
    "SRC": {"scheme": "pooled"},
    "DARN": {"discrepancy": "d_A", "mu": 0.1, "aggregator": "sharpmax"},
    "MCC": {"scheme": {"regularised": {"by": "mcc"}}},
    "logistic": {"scheme": "logistic_regression"},
    "boosting": {"scheme": {"gradient_boosting": {"max_iter": 10}}},
    "JOINT": {"scheme": "joint", "reference": True},
}
SEEN = {"targets": ["t"], "keep": ["predictions"], "training": {"epochs": 2, "batch": 8, "optimizer": "adam"}}


def drawn():
    """Rows of three sites, each at its own level and unit; one column is constant in a site, one everywhere."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3 * ROWS, 6))
    level = x[:, 0] - x[:, 1]
    x = (x + np.repeat([0.0, 5.0, -9.0], ROWS)[:, None]) * np.repeat([1.0, 18.0, 0.3], ROWS)[:, None]
    x[SITE == "b", 4], x[:, 5] = 0.1, 7.7
    return x.astype(np.float32), level


def kept(folder, x, y, data, methods, **more):
    """The predictions of each method on the target."""
    folder.mkdir()
    np.savez(folder / "t.npz", x=x, y=y, domain=SITE)
    path = suite(folder, "arrays", {"file": "t.npz", "train": 40, **data}, methods=methods, **SEEN | more)
    rows = mb.load_predictions(results(path))
    numbers = [name for name in rows if name == "predicted" or name.startswith("probability")]
    return {method: of[numbers].to_numpy(float) for method, of in rows.groupby("method", observed=True)}


@pytest.mark.parametrize(("task", "train"), [("classification", 40), ("regression", {"a": 1, "default": 40})])
def test_a_method_sees_what_a_dataset_of_this_option_gives(task, train, tmp_path):
    x, level = drawn()
    y = level if task == "regression" else (level > 0).astype(int)
    left_out = () if task == "classification" else ("MCC", "logistic")
    methods = {name: method for name, method in METHODS.items() if name not in left_out}
    standardised = {name: method | DOMAIN for name, method in methods.items()}
    size = {"train": train}
    by_dataset = kept(tmp_path / "dataset", x, y, size | DOMAIN, methods)
    by_method = kept(tmp_path / "method", x, y, size | {"standardise": "none"}, standardised)
    as_they_are = kept(tmp_path / "plain", x, y, size | {"standardise": "none"}, methods)
    for name, expected in by_dataset.items():
        np.testing.assert_allclose(by_method[name], expected, atol=1e-3, err_msg=name)
        assert np.abs(as_they_are[name] - expected).max() > 0.01, name


def test_words_are_scaled_and_columns_beside_them_standardised(tmp_path):
    """Column 0 is the number beside the words."""
    rng = np.random.default_rng(1)
    lines = ["site,ill,age,note"]
    for place, site in enumerate(SITE):
        words = " ".join(rng.choice(["good", "bad", "hotel", "meal", "room"], 4))
        lines.append(f"{site},{place % 2},{rng.normal() + 50 * (site == 't'):.3f},{words}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    params = {"domain": "site", "label": "ill", "text": "note", "words": 8, "train": 40, "standardise": "none"}
    params["file"] = str(tmp_path / "t.csv")
    parts = {"dataset": ref("dataset", "table", params), "scheme": ref("scheme", "logistic_regression")}
    cell = replace(make_cell("TAR", target="t"), sources=("a", "b"), **parts)
    table, by_domain = Table(**params), replace(cell, standardise="domain")
    plain, standardised = prepare(cell, table), prepare(by_domain, table)
    assert table.input.beside == 1

    def numbers(x):
        return tensors.dense(x).numpy()

    parts = [(name, plain.training.x, standardised.training.x, rows) for name, rows in plain.training.rows.items()]
    for name, x, found, rows in [*parts, ("t", plain.test.x, standardised.test.x, slice(None))]:
        learned = numbers(plain.training.x)[plain.training.rows[name]]
        expected = numbers(x)[rows]
        expected[:, 0] -= learned[:, 0].mean()
        deviation = learned.std(0)
        np.testing.assert_allclose(numbers(found)[rows], expected / np.where(deviation > 0, deviation, 1), atol=1e-5)
    assert train([by_domain])[0].status == "ok"  # a plain model takes them as a sparse matrix


@component
class Pictures(Dataset):
    """Images with two channels, at another level in each domain; one number is missing."""

    name = "pictures"
    domains = ("a", "b", "c")
    task = Task("classification", 2)
    input = InputSpec((2, 3, 4))

    def load(self, domain, files):
        rng = np.random.default_rng(self.domains.index(domain))
        x = rng.normal(size=(50, 2, 3, 4)) * (1 + self.domains.index(domain)) + np.array([3.0, -5.0])[:, None, None]
        x[:, 1, 0, 0] = np.nan
        return DomainData(x.astype(np.float32), np.arange(50) % 2)


def test_images_have_one_mean_and_variance_for_each_channel():
    dataset = Pictures(train=20)
    plain, cell = prepare(make_cell(), dataset), replace(make_cell(), standardise="domain")
    standardised = prepare(cell, dataset)
    for domain, rows in plain.training.rows.items():
        seen, given = standardised.training.x[rows].numpy(), plain.training.x[rows].numpy().astype(float)
        for channel in (0, 1):
            one, other = seen[:, channel], given[:, channel]
            expected = (other - np.nanmean(other)) / np.nanstd(other)
            np.testing.assert_allclose(one, expected, atol=1e-5, err_msg=domain)
    rows = plain.training.rows["c"]
    mean, deviation = (of(plain.training.x[rows][:, 0].numpy()) for of in (np.mean, np.std))
    moved = (plain.test.x[:, 0].numpy() - mean) / deviation
    np.testing.assert_allclose(standardised.test.x[:, 0].numpy(), moved, atol=1e-5)


def test_target_labels_do_not_reach_it():
    for data in ({}, {"regression": True}):
        cells = [make_cell("DARN", dataset=data | more, epochs=1) for more in ({}, {"poison": "c"})]
        clean, poisoned = (train_with_weights(replace(cell, standardise="domain")) for cell in cells)
        assert clean["outcome"] != poisoned["outcome"]
        assert all(clean[part] == poisoned[part] for part in ("weights", "curves", "validation"))


def test_the_table_says_which_rows_are_standardised_and_the_baseline_is_not(tmp_path, capsys):
    x, level = drawn()
    methods = {"SRC": METHODS["SRC"], "SRC-domain": METHODS["SRC"] | DOMAIN}
    kept(tmp_path / "a", x, level > 0, {}, methods, seeds=6)
    said = " ".join(capsys.readouterr().out.split())
    assert "(mean 0 and variance 1), without labels: SRC-domain." in said
    assert main(["validate", str(tmp_path / "a" / "mine.yaml")]) == 0
    assert "pooled, each domain standardised" in capsys.readouterr().out
    plan = json.loads((tmp_path / "a" / "out" / "mine" / "plan.json").read_text())
    assert plan["experiments"][0]["baseline"] == "SRC"


@pytest.mark.parametrize(
    ("dataset", "backbone", "method", "says"),
    [
        ("sine", "linear", {"scheme": "chance", "reference": True}, "chance does not look at inputs; remove it"),
        ("office31", {"mlp": {"hidden": [4]}}, {"scheme": "pooled"}, "gives bytes of images to a network"),
    ],
)
def test_inputs_that_cannot_be_standardised_are_one_line(dataset, backbone, method, says, tmp_path, capsys):
    methods = {"SRC": {"scheme": "pooled"}, "x": method | DOMAIN}
    line = refusal(capsys, suite(tmp_path, dataset, methods=methods, backbone=backbone))
    assert "methods.x.standardise: " in line
    assert says in line
