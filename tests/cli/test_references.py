"""References of a suite: what selects TAR and JOINT, and what chance scores."""

import io

import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.cli.main import main

SUITE = """\
schema: 1
name: s
dataset: {stress: {train: 100, test: 150}}
targets: [target]
seeds: 3
backbone: {mlp: {hidden: [8]}}
training: {steps: 12, batch: 10, optimizer: adam}
methods:
  SRC: {scheme: pooled}
  TAR: {scheme: {target_only: {hold_out: 0.2}}, reference: true}
  JOINT: {scheme: {joint: {hold_out: 0.2}}, reference: true}
  chance: {scheme: chance, reference: true}
select: {how: grid, budget: 3, by: source_accuracy, space: {training.optimizer.adam.lr: [0.0001, 0.1, 0.01]}}
"""


def run(folder, text):
    (folder / "s.yaml").write_text(text)
    assert main(["run", str(folder / "s.yaml"), "--out", str(folder / "out"), "--executor", "inline", "--quiet"]) == 0
    return folder / "out" / "s"


def test_references_are_selected_on_labels_that_they_hold_out(tmp_path, capsys):
    folder = run(tmp_path, SUITE)
    said = " ".join(capsys.readouterr().out.split())
    assert "Trained with 80 labelled examples of the target: TAR, JOINT." in said
    assert "selected by target_accuracy, the score on labelled training examples of the target that are held" in said
    runs, board = mb.load_results(folder), mb.leaderboard(folder)
    scored = runs["validator:target_accuracy"].notna().groupby(runs["method"].astype(str)).all()
    assert scored.to_dict() == {"SRC": False, "TAR": True, "JOINT": True, "chance": False}
    assert runs.loc[runs["method"] == "SRC", "validator:target_accuracy"].isna().all()
    for method in ("TAR", "JOINT"):
        tried = runs[runs["method"] == method]
        best = tried.loc[tried.groupby("seed")["validator:target_accuracy"].idxmax()]
        assert (best["candidate"] > 0).all()
        assert board.loc[board["method"] == method, "mean"].iloc[0] == pytest.approx(best["score"].mean())
    assert board.loc[board["reference"], "rank"].isna().all()
    assert mb.compare(runs).empty
    # Another criterion does not select them anew.
    for by in ("oracle", "source_accuracy"):
        assert main(["leaderboard", str(folder), "--by", by, "--format", "csv"]) == 0
        shown = pd.read_csv(io.StringIO(capsys.readouterr().out)).set_index("method")["mean"]
        own = board.set_index("method")["mean"]
        assert shown[["TAR", "JOINT"]].tolist() == pytest.approx(own[["TAR", "JOINT"]].tolist(), abs=1e-3)


def test_what_learns_nothing_is_never_ranked(tmp_path, capsys):
    (tmp_path / "s.yaml").write_text(SUITE.replace("chance, reference: true", "chance"))
    assert main(["validate", str(tmp_path / "s.yaml")]) == 2
    assert "chance learns nothing; add reference: true" in capsys.readouterr().err
