"""Shares of classes by a parameter of any dataset, and predictions corrected for the target's shares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.cli.main import main

DOMAINS = ("a", "b", "t")


def runs_of(folder: Path, dataset: str, methods: str, *, rows: int = 600, seeds: str = "3", more: str = "") -> Any:
    """The runs of a suite with target t; two classes of Gaussian inputs, a little turned in t."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, len(DOMAINS) * rows)
    x = rng.normal(size=(len(y), 4)) + 0.7 * (2 * y[:, None] - 1) * np.array([1, 0.5, 0, 0])
    x[2 * rows :, 2] += 0.5
    np.savez(folder / "t.npz", x=x.astype(np.float32), y=y, domain=np.repeat(DOMAINS, rows))
    suite = folder / "s.yaml"
    suite.write_text(
        f"""\
schema: 1
name: s
dataset: {{arrays: {{file: t.npz, {dataset}}}}}
targets: [t]
seeds: {seeds}
backbone: {{mlp: {{hidden: [8], dropout: 0.0}}}}
training: {{epochs: 4, steps: 40, batch: 50, optimizer: {{adam: {{lr: 0.01}}}}}}
keep: [predictions]
{more}methods:
{methods}
"""
    )
    out = folder / f"out{len(list(folder.glob('out*')))}"
    assert main(["run", str(suite), "--out", str(out), "--executor", "inline"]) == 0
    return mb.load_results(out / "s")


def true_shares(runs: Any) -> pd.Series[float]:
    """The share of class 1 in each run's test."""
    counts = mb.load_confusion(runs).groupby(["seed", "true"])["count"].sum().unstack(fill_value=0)
    return counts[1] / counts.sum(axis=1)


PLAIN = "  SRC: {scheme: pooled}\n"
BOTH = PLAIN + "  EM: {scheme: pooled, prior_correction: em}\n"


def test_the_target_has_the_shares_that_the_suite_gives(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, "train: 300, label_shift: {domain: target, shares: [0.8, 0.2]}", PLAIN)
    assert true_shares(runs).tolist() == pytest.approx([0.2] * 3, abs=0.01)
    assert (runs["n_test"] < 300).all()  # rows are left out, none is repeated
    assert (runs["n_test"] > 150).all()


def test_a_source_may_be_shifted_and_the_others_stay(tmp_path: Path) -> None:
    """With class 1 nearly gone from both sources a model rarely answers it; the target's test is that of no shift."""
    methods = PLAIN
    plain = runs_of(tmp_path, "train: 300", methods)
    rare = runs_of(
        tmp_path, "train: 300, label_shift: {domain: a, shares: [0.98, 0.02]}", methods, more="sources: [a]\n"
    )
    assert true_shares(rare).tolist() == true_shares(plain).tolist()
    answers = [mb.load_confusion(runs).groupby("predicted")["count"].sum() for runs in (plain, rare)]
    assert answers[1].get(1, 0) < 0.5 * answers[0][1]


def test_a_class_without_examples_for_its_share_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError):
        runs_of(tmp_path, "train: 300, label_shift: {domain: target, shares: [0.5, 0.5]}", PLAIN, rows=301)
    assert "for the shares of `label_shift`; set other shares, or another `train`" in capsys.readouterr().err


def by_hand(p: Any, shares: Any) -> Any:
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


def test_em_equals_the_papers_equations(tmp_path: Path) -> None:
    """The target is trained on and tested on as a whole, and so are the sources, so that all that EM sees is known."""
    runs = runs_of(tmp_path, "train: all, protocol: transductive", BOTH, rows=300, seeds="1")
    kept = mb.load_predictions(runs)
    columns = ["probability_0", "probability_1"]
    plain, corrected = (kept.loc[kept["method"] == method, columns].to_numpy(np.float64) for method in ("SRC", "EM"))
    y = np.load(tmp_path / "t.npz")["y"][: 2 * 300]
    expected = by_hand(plain, np.bincount(y) / len(y))
    assert corrected == pytest.approx(expected, abs=1e-5)
    assert np.abs(expected.mean(0) - np.bincount(y) / len(y)).max() > 0.01  # there is something to correct


def test_tables_say_what_was_shifted_and_corrected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs_of(tmp_path, "train: 300, label_shift: {domain: target, shares: [0.8, 0.2]}", BOTH, seeds="1")
    said = " ".join(capsys.readouterr().out.split())
    assert "Label shift (`label_shift`): the classes of the target have the shares 0.8, 0.2." in said
    assert main(["validate", str(tmp_path / "s.yaml")]) == 0
    assert "pooled, shares of classes by EM" in capsys.readouterr().out
