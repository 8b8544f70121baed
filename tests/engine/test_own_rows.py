"""A user's rows in any unit or offset give the same numbers or a line; shares of classes, shifted and corrected."""

from pathlib import Path

import numpy as np
import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from tests.own import results, suite

N = 60
DOMAIN = np.repeat(["a", "b", "c"], N)
DRAWN = np.random.default_rng(0)
X = DRAWN.normal(size=(3 * N, 3)) + np.repeat([0.0, 0.3, 0.6], N)[:, None]
Y = 3 * X[:, 0] + 0.3 * DRAWN.normal(size=3 * N)
CLASS = (X[:, 0] > X[:, 1]).astype(int)


METHODS = {
    "SRC": {"scheme": "pooled"},
    "CORAL": {"discrepancy": "coral", "mu": 0.1},
    "forest": {"scheme": {"random_forest": {"n_estimators": 10}}},
    "TAR": {"scheme": "target_only", "reference": True},
}
TRAINING = {"epochs": 2, "steps": 20, "batch": 16, "optimizer": {"adam": {"lr": 0.01}}}


def made(folder, x, y, data=(), **more):
    """A suite on these rows, in a folder of its own."""
    folder.mkdir(exist_ok=True)
    np.savez(folder / "own.npz", x=x, y=y, domain=DOMAIN)
    usual = {"targets": ["b", "c"], "seeds": 1, "methods": METHODS, "training": TRAINING}
    return suite(folder, "arrays", {"file": "own.npz", **dict(data)}, **usual | more)


def refused(path):
    return main(["run", path, "--out", str(Path(path).parent / "out"), "--executor", "inline"]) == 2


def test_a_regression_does_not_depend_on_the_unit_of_its_labels(tmp_path):
    asked = {"validators": ["source_risk", "dev"], "keep": ["predictions", "weights"]}
    units = [(1.0, 0.0), (1e3, 0.0), (1e-4, 5.0), (1.0, 1.7e9), (1e6, -3e12)]
    scores = []
    for place, (scale, offset) in enumerate(units):
        runs = results(made(tmp_path / str(place), X, y := scale * Y + offset, **asked))
        scores.append(runs[["score", "validator:source_risk", "validator:dev"]].to_numpy(float) / scale**2)
        kept = mb.load_predictions(runs)
        assert np.isin(kept["label"], y).all()
        squares = ((kept["predicted"] - kept["label"]) / scale) ** 2
        error = squares.groupby([kept["method"], kept["target"], kept["seed"]]).mean()
        np.testing.assert_allclose(np.sort(error), np.sort(scores[place][:, 0]), rtol=1e-3)
        np.testing.assert_allclose(scores[place], scores[0], rtol=0.02, err_msg=f"{units[place]}")


def test_labels_as_they_are_are_refused_where_float32_cannot_hold_them(tmp_path, capsys):
    as_they_are, single = {"standardise_labels": False}, Y.astype(np.float32)
    plain, double = (results(made(tmp_path, X, y, **as_they_are)) for y in (single, single.astype(float)))
    assert (double["score"] == plain["score"]).all()
    assert refused(made(tmp_path, X, Y + 1e9, {"train": 0.6}, **as_they_are))
    assert "too close for float32; remove `standardise_labels: false`" in capsys.readouterr().err


def test_inputs_are_centred_before_they_lose_digits_or_refused(tmp_path, capsys):
    for how in ("sources", "domain"):
        near, far = (
            results(made(tmp_path / f"{how}{offset}", X + offset, CLASS, {"standardise": how}))["score"]
            for offset in (0.0, 1e9)
        )
        assert (abs(near - far) < 5).all()
    assert refused(made(tmp_path, X + 1e9, CLASS, {"standardise": "none"}))
    assert "differ too little beside their size for float32" in capsys.readouterr().err


def test_classes_on_one_side_alone_are_said(tmp_path, capsys):
    y = np.where((DOMAIN == "c") & (X[:, 2] > 0.5), 2, np.where(DOMAIN == "b", CLASS + (CLASS == 0) * 3, CLASS))
    results(made(tmp_path, X, y, metric="balanced_accuracy"))
    said = capsys.readouterr().err
    assert "target c: of the classes of its test no source has an example to learn from: 2 (" in said
    assert (
        "target c: of the classes of its sources its test has no example, so means over classes leave them out: 3"
        in said
    )
    assert said.count("target c: of") == 2


def test_a_batch_of_one_is_not_normalised_without_a_word(tmp_path, capsys):
    for norm, batch in (("domain", 16), ("batch", 1), ("domain", 1), ("layer", 1)):
        network = {"mlp": {"hidden": [8], "norm": norm}}
        path = made(tmp_path, X, CLASS, backbone=network, training=TRAINING | {"batch": batch})
        assert main(["validate", path]) == 0
        assert ("norm: " in capsys.readouterr().err) == (batch == 1 and norm != "layer")


def test_dropped_duplicates_are_neither_trained_on_nor_tested_and_rows_keep_their_places(tmp_path, capsys):
    x, y = X.copy(), CLASS.copy()
    start = N  # of domain b
    x[start + 20 : start + 35] = x[start : start + 15]
    y[start + 20] = 1 - y[start]  # a copy with another label is a copy, too
    x[start + 50] = x[3]  # a row of another domain is none
    asked = {"targets": ["b"], "keep": ["predictions"], "methods": {"SRC": {"scheme": "pooled"}}}
    drop = {"duplicates": "drop", "protocol": "transductive"}
    runs = results(made(tmp_path / "drop", x, y, drop, **asked))
    assert "earlier one of their domain are left out (`duplicates: drop`)" in " ".join(capsys.readouterr().out.split())
    assert runs["n_test"].eq(N - 15).all()
    kept = mb.load_predictions(runs)
    assert sorted(kept["row"].unique()) == [row for row in range(N) if row not in range(20, 35)]
    assert kept["label"].astype(int).tolist() == y[start + kept["row"]].tolist()
    without = results(made(tmp_path / "keep", x, y, {"protocol": "transductive"}, **asked))
    assert without["n_test"].eq(N).all()
    assert not set(runs["key"]) & set(without["key"])


def test_an_official_test_row_stays_and_its_copy_in_training_goes(tmp_path):
    x = X.copy()
    x[N : N + 10] = x[2 * N - 10 : 2 * N]
    folder = tmp_path / "own"
    folder.mkdir()
    marks = np.where(np.arange(3 * N) % N < N - 10, "train", "test")
    np.savez(folder / "own.npz", x=x, y=CLASS, domain=DOMAIN, split=marks)
    data = {"file": "own.npz", "test_rows": "split=test", "train": "all", "duplicates": "drop"}
    path = suite(folder, "arrays", data, targets=["b"], methods=METHODS, training=TRAINING)
    runs = results(path)
    assert runs["n_test"].eq(10).all()
    assert main(["data", "leaks", path]) == 0


DOMAINS = ("a", "b", "t")
BOTH = {"SRC": {"scheme": "pooled"}, "EM": {"scheme": "pooled", "prior_correction": "em"}}


def shifted(folder, rows=600, **data):
    """A suite with target t; two classes of Gaussian inputs, a little turned in t."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, len(DOMAINS) * rows)
    x = rng.normal(size=(len(y), 4)) + 0.7 * (2 * y[:, None] - 1) * np.array([1, 0.5, 0, 0])
    x[2 * rows :, 2] += 0.5
    np.savez(folder / "t.npz", x=x.astype(np.float32), y=y, domain=np.repeat(DOMAINS, rows))
    training = {"epochs": 4, "steps": 40, "batch": 50, "optimizer": {"adam": {"lr": 0.01}}}
    more = {"targets": ["t"], "seeds": 3, "keep": ["predictions"], "training": training, "methods": BOTH}
    return suite(folder, "arrays", {"file": "t.npz", "train": 300, **data}, **more)


def true_shares(runs):
    """The share of class 1 in each run's test."""
    counts = mb.load_confusion(runs).groupby(["seed", "true"])["count"].sum().unstack(fill_value=0)
    return counts[1] / counts.sum(axis=1)


def test_the_target_has_the_shares_that_the_suite_gives_and_tables_say_so(tmp_path, capsys):
    path = shifted(tmp_path, label_shift={"domain": "target", "shares": [0.8, 0.2]})
    runs = results(path)
    assert true_shares(runs).tolist() == pytest.approx([0.2] * 3, abs=0.01)
    assert (runs["n_test"] < 300).all()  # rows are left out, none is repeated
    assert (runs["n_test"] > 150).all()
    said = " ".join(capsys.readouterr().out.split())
    assert "Label shift (`label_shift`): the classes of the target have the shares 0.8, 0.2." in said
    assert main(["validate", path]) == 0
    assert "pooled, shares of classes by EM" in capsys.readouterr().out


def test_a_source_may_be_shifted_and_the_others_stay(tmp_path):
    """With class 1 nearly gone from the sources a model rarely answers it; the target's test is that of no shift."""
    plain, rare = (
        results(shifted(tmp_path / name, leave_out=["b"], **shift))
        for name, shift in (("plain", {}), ("rare", {"label_shift": {"domain": "a", "shares": [0.98, 0.02]}}))
    )
    assert true_shares(rare).tolist() == true_shares(plain).tolist()
    answers = [mb.load_confusion(runs).groupby("predicted")["count"].sum() for runs in (plain, rare)]
    assert answers[1].get(1, 0) < 0.5 * answers[0][1]


def test_a_class_without_examples_for_its_share_is_one_line(tmp_path, capsys):
    path = shifted(tmp_path, rows=301, label_shift={"domain": "target", "shares": [0.5, 0.5]})
    assert main(["run", path, "--executor", "inline", "--out", str(tmp_path)]) != 0
    assert "for the shares of `label_shift`; set other shares, or another `train`" in capsys.readouterr().err


def by_hand(p, shares):
    """Posteriors after EM, one example and one class at a time, as the paper has it."""
    estimate = np.array(shares)
    for _ in range(5000):
        posterior = np.empty_like(p)
        for row in range(len(p)):
            joint = [p[row, c] * estimate[c] / shares[c] for c in range(len(shares))]
            posterior[row] = np.array(joint) / sum(joint)
        if np.abs(posterior.mean(0) - estimate).max() < 1e-12:
            break
        estimate = posterior.mean(0)
    return posterior


def test_em_equals_the_papers_equations(tmp_path):
    """The target is trained on and tested on as a whole, and so are the sources, so that all that EM sees is known."""
    kept = mb.load_predictions(results(shifted(tmp_path, rows=300, train="all", protocol="transductive")))
    kept = kept[kept["seed"] == 0]
    columns = ["probability_0", "probability_1"]
    plain, corrected = (kept.loc[kept["method"] == method, columns].to_numpy(np.float64) for method in ("SRC", "EM"))
    y = np.load(tmp_path / "t.npz")["y"][: 2 * 300]
    expected = by_hand(plain, np.bincount(y) / len(y))
    assert corrected == pytest.approx(expected, abs=1e-5)
    assert np.abs(expected.mean(0) - np.bincount(y) / len(y)).max() > 0.01  # there is something to correct
