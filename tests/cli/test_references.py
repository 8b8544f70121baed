"""References of a suite: what selects TAR and JOINT, what chance scores, and kept predictions of the target."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.errors import StoreError

SUITE = """\
schema: 1
name: s
dataset: {stress: {train: 100, test: 150}}
targets: [target]
seeds: 3
backbone: {mlp: {hidden: [8]}}
training: {steps: 12, batch: 10, optimizer: adam}
keep: [target_predictions]
methods:
  SRC: {scheme: pooled}
  TAR: {scheme: {target_only: {hold_out: 0.2}}, reference: true}
  JOINT: {scheme: {joint: {hold_out: 0.2}}, reference: true}
  chance: {scheme: chance, reference: true}
select: {how: grid, budget: 3, by: source_accuracy, space: {training.optimizer.adam.lr: [0.0001, 0.1, 0.01]}}
"""
REGRESSION = """\
schema: 1
name: s
dataset: {sine: {train: 20, test: 20}}
targets: [target_0]
seeds: 1
backbone: linear
training: {steps: 3, batch: 5, optimizer: adam}
keep: [target_predictions]
methods:
  TAR: {scheme: {target_only: {hold_out: 0.2}}, reference: true}
  chance: {scheme: chance, reference: true}
  SRC: {scheme: pooled}
"""


def run(folder: Path, text: str) -> Path:
    (folder / "s.yaml").write_text(text)
    assert main(["run", str(folder / "s.yaml"), "--out", str(folder / "out"), "--executor", "inline", "--quiet"]) == 0
    return folder / "out" / "s"


def test_references_are_selected_on_labels_that_they_hold_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_another_criterion_does_not_reselect_what_trains_with_the_targets_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run(tmp_path, SUITE)
    before = mb.load_results(folder)
    for by in ("oracle", "ensv"):
        capsys.readouterr()
        assert main(["leaderboard", str(folder), "--by", by, "--format", "csv"]) == 0
        shown = pd.read_csv(io.StringIO(capsys.readouterr().out)).set_index("method")["mean"]
        own = mb.leaderboard(before).set_index("method")["mean"]
        assert shown[["TAR", "JOINT"]].tolist() == pytest.approx(own[["TAR", "JOINT"]].tolist(), abs=1e-3)


def test_a_folder_in_which_no_criterion_has_selected_yet_has_a_page(tmp_path: Path, capsys) -> None:
    (tmp_path / "s.yaml").write_text(SUITE)
    words = ["run", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out"), "--executor", "inline", "--limit", "4"]
    assert main(words) == 0
    capsys.readouterr()
    assert main(["report", str(tmp_path / "out" / "s")]) == 1
    assert capsys.readouterr() == (f"{tmp_path / 'out' / 's' / 'report.html'}\n", "")


def test_predictions_of_the_target_are_kept_at_a_byte_and_chance_answers_one_class(tmp_path: Path) -> None:
    folder = run(tmp_path, SUITE)
    answers = mb.load_target_predictions(folder)
    assert list(answers) == ["experiment", "target", "method", "seed", "example", "predicted"]
    assert answers.groupby(["method", "seed"], observed=True).size().unique().tolist() == [100]
    chance = answers[answers["method"] == "chance"].groupby("seed")["predicted"]
    assert chance.nunique().tolist() == [1, 1, 1]
    counts = mb.load_confusion(folder)
    tested = counts[counts["method"] == "chance"].groupby("seed")["predicted"].agg(["nunique", "first"])
    assert tested["nunique"].tolist() == [1, 1, 1]
    assert tested["first"].tolist() == chance.first().tolist()
    files = sorted(folder.glob("cells/*/*.target_predictions-*.npz"))
    assert len(files) == 30
    with np.load(files[0]) as arrays:
        assert {name: (arrays[name].dtype, arrays[name].shape) for name in arrays} == {"predicted": (np.uint8, (100,))}
    assert max(path.stat().st_size for path in files) < 400
    assert main(["store", "verify", "--strict", str(folder)]) == 0
    assert main(["store", "merge", str(tmp_path / "merged"), str(folder)]) == 0
    pd.testing.assert_frame_equal(mb.load_target_predictions(tmp_path / "merged"), answers)
    files[0].write_bytes(files[0].read_bytes()[:-1])
    assert main(["store", "verify", str(folder)]) == 1


def test_ensv_selects_the_candidate_that_agrees_most_with_the_majority(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run(tmp_path, SUITE.replace("by: source_accuracy", "by: ensv"))
    assert "Settings selected by ensv, without target labels" in " ".join(capsys.readouterr().out.split())
    runs, board = mb.load_results(folder), mb.leaderboard(folder)
    best = []
    for _, tried in runs[runs["method"] == "SRC"].groupby("seed"):
        answers = []
        for key in tried["key"]:
            (file,) = folder.glob(f"cells/{key[:2]}/{key}.target_predictions-*.npz")
            with np.load(file) as arrays:
                answers.append(arrays["predicted"])
        majority = stats.mode(np.stack(answers)).mode  # the lowest of equally frequent ones
        agreement = [float((answer == majority).mean()) for answer in answers]
        best.append(tried["score"].iloc[int(np.argmax(agreement))])
    assert board.loc[board["method"] == "SRC", "mean"].iloc[0] == pytest.approx(np.mean(best))
    assert main(["selection", str(folder)]) == 0
    assert "ensv: the share of the target's unlabelled examples" in capsys.readouterr().out
    (tmp_path / "s.yaml").write_text(SUITE.replace("by: source_accuracy", "by: ensv").replace("target_pred", "pred"))
    assert main(["validate", str(tmp_path / "s.yaml")]) == 2
    assert "ensv compares predicted classes; add keep: [target_predictions]" in capsys.readouterr().err


def test_ensv_selects_nothing_where_stored_runs_have_no_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, SUITE.replace("seeds: 3", "seeds: 1").replace("[target_predictions]", "[]"))
    (tmp_path / "s.yaml").write_text(SUITE.replace("seeds: 3", "seeds: 1").replace("by: source_accuracy", "by: ensv"))
    capsys.readouterr()
    assert main(["run", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out"), "--executor", "inline"]) == 1
    out, err = capsys.readouterr()
    assert "candidates without the score that selects, which cannot be selected: SRC 3 of 3" in " ".join(out.split())
    assert "stored runs have no target_predictions, which only training makes" in err
    assert main(["selection", str(tmp_path / "out" / "s")]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "no score where a candidate's predictions are not kept" in out
    assert "ensv * - - - chance" in out


def test_references_of_regression(tmp_path: Path) -> None:
    folder = run(tmp_path, REGRESSION)
    runs, answers = mb.load_results(folder), mb.load_target_predictions(folder)
    scores = runs.set_index(runs["method"].astype(str))["validator:target_accuracy"]
    assert scores["TAR"] < 0
    assert scores.drop("TAR").isna().all()
    assert answers["predicted"].dtype == np.float32
    assert answers.loc[answers["method"] == "chance", "predicted"].nunique() == 1


def test_what_learns_nothing_is_never_ranked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.yaml").write_text(SUITE.replace("chance, reference: true", "chance"))
    assert main(["validate", str(tmp_path / "s.yaml")]) == 2
    assert "chance learns nothing; add reference: true" in capsys.readouterr().err


def test_stored_runs_without_the_file_stay_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, REGRESSION.replace("[target_predictions]", "[]"))
    run(tmp_path, REGRESSION)
    assert "3 stored runs have no target_predictions, which only training makes" in capsys.readouterr().err
    with pytest.raises(StoreError, match=r"add `keep: \[target_predictions\]`"):
        mb.load_target_predictions(tmp_path / "out" / "s")
