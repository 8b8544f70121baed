"""Rows of scikit-learn: its own numbers on the split of every method; suites that cannot have one say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import msda_bench as mb
from msda_bench.api import DomainData
from msda_bench.cli.main import main
from msda_bench.data.splits import split
from msda_bench_builtin.datasets import Arrays

ROWS, SEED = 80, 3
DOMAINS = ("a", "b", "t")
EMPTY = dict.fromkeys(DOMAINS, DomainData(np.empty((ROWS, 0)), np.empty(ROWS)))


def made(folder: Path, *, regression: bool = False) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The inputs and labels of three domains, 80 rows each, saved as t.npz."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(len(DOMAINS) * ROWS, 5)).astype(np.float32)
    y = x[:, 0] - x[:, 1] ** 2 + 0.3 * rng.normal(size=len(x)).astype(np.float32)
    labels = y.astype(np.float32) if regression else (y > -1).astype(np.int64)
    np.savez(folder / "t.npz", x=x, y=labels, domain=np.repeat(DOMAINS, ROWS))
    return x, labels


def suite(folder: Path, methods: str, **changes: str) -> Path:
    """A suite of the arrays with these methods."""
    path = folder / "s.yaml"
    parts = {
        "dataset": "{arrays: {file: t.npz, train: 50, standardise: none}}",
        "backbone": "{mlp: {hidden: [4]}}",
        **changes,
    }
    path.write_text(
        f"""\
schema: 1
name: s
dataset: {parts["dataset"]}
targets: [t]
seeds: [{SEED}]
backbone: {parts["backbone"]}
training: {{epochs: 1, steps: 2, batch: 4, optimizer: adam}}
methods:
  SRC: {{scheme: pooled}}
{methods}
"""
    )
    return path


def rows_of(part: str, *domains: str) -> np.ndarray[Any, Any]:
    """The rows of the file that a run trains on or is tested on."""
    chosen = split(Arrays(train=50), "t", EMPTY, seed=SEED)
    return np.concatenate([getattr(chosen[name], part) + ROWS * DOMAINS.index(name) for name in domains])


def run(folder: Path, path: Path) -> None:
    """Trains the suite into out/."""
    assert main(["run", str(path), "--out", str(folder / "out"), "--executor", "inline"]) == 0


def score(folder: Path, path: Path, method: str) -> Any:
    """A run's row of the frame."""
    run(folder, path)
    frame = mb.load_results(folder / "out" / "s")
    return frame[frame["method"] == method].iloc[0]


def test_a_row_is_scikit_learns_on_the_rows_of_every_method(tmp_path: Path) -> None:
    x, y = made(tmp_path)
    path = suite(
        tmp_path,
        """\
  logistic: {scheme: {logistic_regression: {c: 0.5, class_weight: balanced}}}
  boosting: {scheme: {gradient_boosting: {max_iter: 20}}}
  own: {scheme: {logistic_regression: {labels: target}}, reference: true}""",
    )
    train, test = rows_of("train", "a", "b"), rows_of("test", "t")
    models = {
        "logistic": LogisticRegression(C=0.5, class_weight="balanced", max_iter=1000).fit(x[train], y[train]),
        "boosting": HistGradientBoostingClassifier(max_iter=20, early_stopping=False).fit(x[train], y[train]),
        "own": LogisticRegression(max_iter=1000).fit(x[rows_of("train", "t")], y[rows_of("train", "t")]),
    }
    for method, model in models.items():
        scored = score(tmp_path, path, method)
        assert scored["n_test"] == len(test)
        assert scored["n_correct"] == (model.predict(x[test]) == y[test]).sum(), method
        assert scored["target_labels"] == (method == "own")


@pytest.mark.parametrize(
    ("method", "changes", "says"),
    [
        ("forest: {scheme: random_forest}", {"dataset": "{sine: {}}"}, None),
        (
            "forest: {scheme: random_forest}",
            {"dataset": "digits", "backbone": "convnet"},
            "methods.forest.scheme: random_forest reads rows of numbers, and an example of digits has the shape",
        ),
        (
            "own: {scheme: {random_forest: {labels: target}}}",
            {},
            "random_forest uses target labels; add reference: true",
        ),
        ("line: {scheme: logistic_regression}", {"dataset": "{sine: {}}"}, "trains classification; sine is regression"),
    ],
)
def test_a_suite_that_cannot_have_such_a_row_gets_one_line(
    method: str, changes: dict[str, str], says: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path)
    path = suite(tmp_path, f"  {method}", **changes)
    if "dataset" in changes:
        path.write_text(path.read_text().replace("targets: [t]\n", ""))
    assert main(["validate", str(path)]) == (0 if says is None else 2)
    if says is not None:
        (line,) = capsys.readouterr().err.splitlines()
        assert says in line
