"""Metrics and kept arrays, from a suite to its tables."""

import zipfile

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.errors import StoreError
from tests.cli.conftest import SUITE
from tests.logs import contents

SINE = SUITE.replace("[target_0, target_1]", "[target_0]")
CLASSES = SINE.replace("target_0", "serif").replace("sine: {train: 20, test: 20}", "fonts: {train: 40, per_class: 20}")


def run(tmp_path, suite, *more):
    (tmp_path / "s.yaml").write_text(suite)
    assert main(["run", str(tmp_path / "s.yaml"), "--out", str(tmp_path), "--executor", "inline", *more]) == 0
    return tmp_path / "tiny"


def test_a_suites_metric_ranks_methods_and_others_can_be_shown(tmp_path, shown, capsys):
    plain = run(tmp_path, SINE)
    before = contents(plain)
    said = shown("leaderboard", plain, "--metric", "mae")
    assert "mean absolute error, " in said
    assert "lower is better" in said
    assert contents(plain) == before
    without = f"{plain}: has no classification task, so there are no classes to show"
    assert without in shown("leaderboard", plain, "--per-class", code=2)
    by_r2 = mb.load_results(plain, metric=["r2", "mse"])
    assert by_r2["metric:mse"].tolist() == mb.load_results(plain)["score"].tolist()
    board = mb.leaderboard(by_r2)
    best = board[(board["rank"] == 1) & (board["target"] == "average")]
    assert best["mean"].tolist() == [board.loc[board["target"] == "average", "mean"].max()]
    run(tmp_path, SINE + "metric: r2\n", "--quiet")
    assert "R2, higher is better" in capsys.readouterr().out
    again = mb.load_results(plain)
    assert again["score"].tolist() == by_r2["score"].tolist()
    assert again["key"].tolist() == by_r2["key"].tolist()
    assert "metric:r2" in (plain / "runs.csv").read_text().splitlines()[0]


def test_a_metric_that_needs_outputs_is_stored_and_keyed(tmp_path, shown, capsys):
    folder = run(tmp_path, CLASSES)
    remedy = "it needs the outputs of the test: name it in the suite, or add `keep: [predictions]`;"
    for command in ("leaderboard", "compare", "report"):
        assert f"{folder}: no run has AUC: {remedy}" in shown(command, folder, "--metric", "auc", code=2)
    plain = mb.load_results(folder, metric=["balanced_accuracy", "accuracy"])
    confusion = mb.load_confusion(folder)
    right = confusion[confusion["true"] == confusion["predicted"]].groupby(["method", "seed"], observed=True)["count"]
    found = plain.groupby(["method", "seed"], observed=True)["n_correct"].sum()
    assert right.sum().to_dict() == found.to_dict()
    assert plain["metric:accuracy"].tolist() == (100 * plain["n_correct"] / plain["n_test"]).tolist()
    assert "accuracy on each class in percent" in shown("leaderboard", folder, "--per-class")
    runs = mb.load_results(run(tmp_path, CLASSES + "metric: auc\nkeep: [predictions]\n"))
    assert "AUC in percent, higher is better" in capsys.readouterr().out
    assert not set(runs["key"]) & set(plain["key"])
    shown("report", folder)
    assert "AUC in percent, higher is better" in (folder / "report.html").read_text()


def test_kept_predictions_round_trip(tmp_path, capsys):
    plain = run(tmp_path, SINE)
    with pytest.raises(StoreError, match="keep: \\[predictions\\]"):
        mb.load_predictions(plain)
    capsys.readouterr()
    run(tmp_path, SINE + "keep: [predictions]\n", "--quiet")
    assert "4 stored runs have no predictions" in capsys.readouterr().err
    (tmp_path / "new").mkdir()
    kept = run(tmp_path / "new", SINE + "keep: [predictions, weights]\n")
    runs, found = mb.load_results(kept), mb.load_predictions(kept)
    assert runs["key"].tolist() == mb.load_results(plain)["key"].tolist()
    assert list(found) == ["experiment", "target", "method", "seed", "example", "row", "label", "predicted"]
    errors = (found["label"].astype(float) - found["predicted"].astype(float)) ** 2
    sums = errors.groupby([found["method"], found["seed"]], observed=True, sort=False).sum()
    np.testing.assert_allclose(sums.to_numpy(), runs["sum_squared_error"].to_numpy())
    assert len(zipfile.ZipFile(kept / "arrays.zip").namelist()) == 8


def test_metrics_of_one_class_are_computed_of_kept_predictions(tmp_path, shown):
    """Threshold-free metrics of runs that were stored before anybody asked for them, of the class that is named."""
    folder = run(tmp_path, CLASSES.replace("per_class: 20", "per_class: 10") + "keep: [predictions]\n", "--quiet")
    found = mb.load_predictions(folder).astype({"method": str})
    for positive in (1, 3):
        runs = mb.load_results(folder, metric=[f"{name}(positive={positive})" for name in ("auprc", "sensitivity")])
        for run_of in runs.to_dict("records"):
            mine = found[(found["method"] == run_of["method"]) & (found["seed"] == run_of["seed"])]
            is_mine = mine["label"] == positive
            expected = average_precision_score(is_mine, mine[f"probability_{positive}"])
            assert run_of["metric:auprc"] == pytest.approx(100 * expected, rel=1e-4)
            sensitivity = (mine["predicted"][is_mine] == positive).mean()
            assert run_of["metric:sensitivity"] == pytest.approx(100 * sensitivity)
            assert run_of["score"] == run_of["metric:auprc"]
    for command in ("leaderboard", "compare"):
        assert "AUPRC of class 3 in percent" in shown(command, folder, "--metric", "auprc(positive=3)")
    wrong = shown("leaderboard", folder, "--metric", "auprc(3)", code=2)
    assert "write NAME, or NAME(PARAMETER=VALUE)" in wrong


def test_another_metric_is_of_the_class_that_the_suites_metric_names(tmp_path, shown):
    folder = run(tmp_path, CLASSES + "metric: {auprc: {positive: 2}}\nkeep: [predictions]\n", "--quiet")
    stored = mb.load_results(folder)["score"]
    assert "sensitivity of class 2 in percent" in shown("leaderboard", folder, "--metric", "sensitivity")
    assert mb.load_results(folder, metric="auprc")["score"].tolist() == stored.tolist()
    assert mb.load_results(folder, metric="auprc(positive=0)")["score"].tolist() != stored.tolist()
