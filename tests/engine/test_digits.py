"""Labels and inputs in any unit and with any offset give the same numbers, or a line; what classes lack is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msda_bench as mb
from msda_bench.cli.main import main

N = 60
DOMAIN = np.repeat(["a", "b", "c"], N)
DRAWN = np.random.default_rng(0)
X = DRAWN.normal(size=(3 * N, 3)) + np.repeat([0.0, 0.3, 0.6], N)[:, None]
Y = 3 * X[:, 0] + 0.3 * DRAWN.normal(size=3 * N)
CLASS = (X[:, 0] > X[:, 1]).astype(int)


def ran(folder: Path, x: Any, y: Any, data: str = "", more: str = "", backbone: str = "") -> Any:
    """The results of a suite on these rows, or its exit code."""
    np.savez(folder / "own.npz", x=x, y=y, domain=DOMAIN)
    (folder / "own.yaml").write_text(
        f"""\
schema: 1
name: own
dataset: {{arrays: {{file: own.npz{data}}}}}
targets: [b, c]
seeds: 2
backbone: {{mlp: {{hidden: [8]{backbone}}}}}
training: {{epochs: 2, steps: 20, batch: 16, optimizer: {{adam: {{lr: 0.01}}}}}}
methods:
  SRC: {{scheme: pooled}}
  CORAL: {{discrepancy: coral, mu: 0.1}}
  forest: {{scheme: random_forest}}
  TAR: {{scheme: target_only, reference: true}}
{more}"""
    )
    out = folder / "out"
    code = main(["run", str(folder / "own.yaml"), "--out", str(out), "--device", "cpu", "--executor", "inline"])
    return mb.load_results(out / "own") if code == 0 else code


@pytest.mark.parametrize(("scale", "offset"), [(1e3, 0.0), (1e-4, 5.0), (1.0, 1.7e9), (1e6, -3e12)])
def test_a_regression_does_not_depend_on_the_unit_of_its_labels(tmp_path: Path, scale: float, offset: float) -> None:
    asked = "validators: [source_risk, dev]\nkeep: [predictions, weights]\n"
    scores = []
    for name, y in (("plain", Y), ("moved", scale * Y + offset)):
        (tmp_path / name).mkdir()
        runs = ran(tmp_path / name, X, y, more=asked)
        columns = runs[["score", "validator:source_risk", "validator:dev"]].to_numpy(float)
        scores.append(columns)
        kept = mb.load_predictions(tmp_path / name / "out" / "own")
        assert np.isin(kept["label"], y).all()
        error = (
            ((kept["predicted"] - kept["label"]) ** 2).groupby([kept["method"], kept["target"], kept["seed"]]).mean()
        )
        np.testing.assert_allclose(np.sort(error), np.sort(columns[:, 0]), rtol=1e-3)
    np.testing.assert_allclose(scores[1], scores[0] * scale**2, rtol=0.02)


def test_labels_as_they_are_are_refused_where_float32_cannot_hold_them(tmp_path: Path, capsys: Any) -> None:
    as_they_are = "standardise_labels: false\n"
    plain = ran(tmp_path, X, Y.astype(np.float32), more=as_they_are)
    assert (ran(tmp_path, X, Y.astype(np.float32).astype(float), more=as_they_are)["score"] == plain["score"]).all()
    assert ran(tmp_path, X, Y + 1e9, data=", train: 0.6", more=as_they_are) == 2
    assert "too close for float32; remove `standardise_labels: false`" in capsys.readouterr().err


def test_inputs_are_centred_before_they_lose_digits_or_refused(tmp_path: Path, capsys: Any) -> None:
    scores = {}
    for offset in (0.0, 1e9):
        for how in ("sources", "domain"):
            folder = tmp_path / f"{how}{offset}"
            folder.mkdir()
            scores[how, offset] = ran(folder, X + offset, CLASS, f", standardise: {how}")["score"]
    assert (abs(scores["sources", 0.0] - scores["sources", 1e9]) < 5).all()
    assert (abs(scores["domain", 0.0] - scores["domain", 1e9]) < 5).all()
    assert ran(tmp_path, X + 1e9, CLASS, ", standardise: none") == 2
    assert "differ too little beside their size for float32" in capsys.readouterr().err


def test_classes_on_one_side_alone_are_said(tmp_path: Path, capsys: Any) -> None:
    y = np.where((DOMAIN == "c") & (X[:, 2] > 0.5), 2, np.where(DOMAIN == "b", CLASS + (CLASS == 0) * 3, CLASS))
    ran(tmp_path, X, y, more="metric: balanced_accuracy\n")
    said = capsys.readouterr().err
    assert "target c: of the classes of its test no source has an example to learn from: 2 (" in said
    assert (
        "target c: of the classes of its sources its test has no example, so means over classes leave them out: 3"
        in said
    )
    assert said.count("target c: of") == 2


def test_a_batch_of_one_is_not_normalised_without_a_word(tmp_path: Path, capsys: Any) -> None:
    ran(tmp_path, X, CLASS, backbone=", norm: domain")
    assert "norm" not in capsys.readouterr().err
    path = tmp_path / "own.yaml"
    for norm in ("batch", "domain", "layer"):
        path.write_text(path.read_text().replace("batch: 16", "batch: 1").replace("norm: domain", f"norm: {norm}"))
        assert main(["validate", str(path)]) == 0
        assert ("norm: " in capsys.readouterr().err) == (norm != "layer")
        path.write_text(path.read_text().replace(f"norm: {norm}", "norm: domain"))
