"""Rows of scikit-learn and of another's predictions, on the split of every method; suites that cannot have one."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import msda_bench as mb
from msda_bench.api import DomainData
from msda_bench.cli.main import main
from msda_bench.data.splits import split
from msda_bench_builtin.datasets import Arrays, Table
from tests.own import refusal, results, suite

ROWS, SEED = 80, 3
DOMAINS = ("a", "b", "t")
SRC = {"SRC": {"scheme": "pooled"}}
GIVEN = {"scheme": "given", "reference": True}
TABLE = {"file": "t.csv", "domain": "site", "label": "ill", "predictions": "vendor"}
EMPTY = dict.fromkeys(DOMAINS, DomainData(np.empty((ROWS, 0)), np.empty(ROWS)))


def rows_of(part, *domains):
    """The rows of the file that a run trains on or is tested on."""
    chosen = split(Arrays(train=50), "t", EMPTY, seed=SEED)
    return np.concatenate([getattr(chosen[name], part) + ROWS * DOMAINS.index(name) for name in domains])


def test_a_row_is_scikit_learns_on_the_rows_of_every_method(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(len(DOMAINS) * ROWS, 5)).astype(np.float32)
    y = (x[:, 0] - x[:, 1] ** 2 + 0.3 * rng.normal(size=len(x)) > -1).astype(np.int64)
    np.savez(tmp_path / "t.npz", x=x, y=y, domain=np.repeat(DOMAINS, ROWS))
    methods = {
        "logistic": {"scheme": {"logistic_regression": {"c": 0.5, "class_weight": "balanced"}}},
        "boosting": {"scheme": {"gradient_boosting": {"max_iter": 20}}},
        "own": {"scheme": {"logistic_regression": {"labels": "target"}}, "reference": True},
    }
    data = {"file": "t.npz", "train": 50, "standardise": "none"}
    runs = results(suite(tmp_path, "arrays", data, targets=["t"], seeds=[SEED], methods=SRC | methods))
    train, test = rows_of("train", "a", "b"), rows_of("test", "t")
    models = {
        "logistic": LogisticRegression(C=0.5, class_weight="balanced", max_iter=1000).fit(x[train], y[train]),
        "boosting": HistGradientBoostingClassifier(max_iter=20, early_stopping=False).fit(x[train], y[train]),
        "own": LogisticRegression(max_iter=1000).fit(x[rows_of("train", "t")], y[rows_of("train", "t")]),
    }
    for method, model in models.items():
        scored = runs[runs["method"] == method].iloc[0]
        assert scored["n_test"] == len(test)
        assert scored["n_correct"] == (model.predict(x[test]) == y[test]).sum(), method
        assert scored["target_labels"] == (method == "own")


def table(folder, guess):
    """Writes a table of which a column holds `guess(row, label)`; its labels."""
    rng = np.random.default_rng(2)
    lines, labels = ["site,ill,age,dose,vendor"], []
    for site in DOMAINS:
        for row in range(ROWS):
            labels.append("yes" if row % 3 else "no")
            lines.append(f"{site},{labels[-1]},{rng.normal():.3f},{rng.normal():.3f},{guess(row, labels[-1])}")
    (folder / "t.csv").write_text("\n".join(lines))
    return labels


def with_given(folder):
    more = {"targets": ["t"], "seeds": 6, "keep": ["predictions"], "methods": SRC | {"theirs": GIVEN}}
    return suite(folder, "table", TABLE, **more)


def test_a_vendors_answers_are_counted_on_the_test_of_every_method(tmp_path, capsys):
    labels = table(tmp_path, lambda row, label: label if row % 4 else "yes")
    assert main(["validate", with_given(tmp_path)]) == 0
    assert "vendor" not in capsys.readouterr().out  # it is no input
    runs = results(with_given(tmp_path))
    said = " ".join(capsys.readouterr().out.split())
    assert "Predictions that come with the data, not trained here: theirs." in said
    mine = runs[runs["method"] == "theirs"]
    assert mine["reference"].all()
    for seed, right, tested in zip(mine["seed"], mine["n_correct"], mine["n_test"], strict=True):
        rows = split(Table(train=0.5), "t", EMPTY, seed=seed)["t"].test
        assert tested == len(rows)
        assert right == sum(bool(row % 4) or labels[2 * ROWS + row] == "yes" for row in rows)
    assert mb.compare(runs).empty  # SRC alone is left to compare
    assert main(["report", str(tmp_path / "out" / "mine")]) == 0
    assert main(["store", "verify", "--strict", str(tmp_path / "out" / "mine")]) == 0


def test_given_numbers_are_scored_in_the_users_unit(tmp_path):
    """Models learn standardised labels; what comes with the data is neither restored nor rounded to float32."""
    rng = np.random.default_rng(4)
    y = 1e6 + 1000 * rng.normal(size=len(DOMAINS) * ROWS)
    theirs = y + np.where(np.arange(len(y)) % 2, 0.5, -0.5)
    np.savez(tmp_path / "t.npz", x=rng.normal(size=(len(y), 3)), y=y, domain=np.repeat(DOMAINS, ROWS), vendor=theirs)
    data = {"file": "t.npz", "train": 50, "predictions": "vendor"}
    runs = results(suite(tmp_path, "arrays", data, targets=["t"], seeds=[SEED], methods=SRC | {"theirs": GIVEN}))
    assert runs.set_index("method")["score"]["theirs"] == pytest.approx(0.25, rel=1e-6)


def test_a_test_row_without_a_prediction_is_one_line(tmp_path, capsys):
    table(tmp_path, lambda row, label: label if row else "")
    assert main(["run", with_given(tmp_path), "--out", str(tmp_path / "out"), "--executor", "inline"]) in {1, 2}
    assert "1 of 40 test examples of target 't' have no prediction" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "method", "says"),
    [
        ({"predictions": None}, GIVEN, "table names none (`predictions`)"),
        ({"predictions": "maker"}, GIVEN, "no column 'maker' for `predictions`"),
        ({"predictions": "ill"}, GIVEN, "column 'ill' is both label and predictions; name two columns"),
        ({"predictions": "age"}, GIVEN, "which is none of the classes no, yes; correct it, or leave it empty"),
        ({}, {"scheme": "given"}, "given shows predictions of another's model; add reference: true"),
        ({}, GIVEN | {"prior_correction": "em"}, "given changes no prediction; remove it"),
        ({}, {"scheme": {"random_forest": {"labels": "target"}}}, "random_forest uses target labels; add reference: "),
        ("sine", {"scheme": "logistic_regression"}, "trains classification; sine is regression"),
        ("digits", {"scheme": "random_forest"}, "reads rows of numbers, and an example of digits has the shape"),
    ],
)
def test_a_suite_that_cannot_have_such_a_row_gets_one_line(changes, method, says, tmp_path, capsys):
    table(tmp_path, lambda _, label: label)
    dataset = changes if isinstance(changes, str) else {"table": TABLE | changes}
    backbone = {"backbone": "convnet"} if dataset == "digits" else {}
    assert says in refusal(capsys, suite(tmp_path, dataset, methods=SRC | {"theirs": method}, **backbone))
