"""Suites that select settings, references by labels that they hold out among them, end to end with the real engine."""

import io
from pathlib import Path

import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from tests.cli.conftest import INLINE, SUITE
from tests.logs import lines_of

SELECTING = (
    SUITE.replace("{sharpmax: {gamma: 1.0}}}", "sharpmax, search: {aggregator.sharpmax.gamma: [0.1, 10.0]}}").replace(
        "seeds: 2", "seeds: 1"
    )
    + """  TAR: {scheme: target_only, reference: true}
select:
  how: random
  budget: 3
  by: BY
  space: {training.optimizer.adam.lr: [0.01, 0.1, 0.3], mu: [0.001, 0.01, 0.1]}
validators: [source_risk]
"""
)
ORACLE = "by oracle, the score on the target's own test labels"


def run(command, by):
    Path("tiny.yaml").write_text(SELECTING.replace("BY", by))
    return command(*INLINE)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run(lambda *words: main([*words]), "source_risk") == 0
    return folder


@pytest.fixture
def here(trained, monkeypatch):
    monkeypatch.chdir(trained)
    return trained / "results" / "tiny"


def test_another_criterion_trains_nothing_and_the_oracle_is_named_in_every_output(here, shown):
    before = lines_of(here)
    board, means = here / "leaderboard.csv", {}
    for by in ("source_risk", "oracle"):
        printed = run(shown, by)
        assert " trained" not in printed
        means[by] = pd.read_csv(board)["mean"]
    assert lines_of(here) == before
    assert (means["oracle"] <= means["source_risk"]).all()
    assert f"Settings selected {ORACLE}" in printed
    rows = pd.read_csv(board)
    assert (rows["recipe"].str.endswith("by oracle") & rows["notes"].str.contains(ORACLE, regex=False)).all()
    shown("report", here)
    page = (here / "report.html").read_text().replace("&#39;", "'")
    assert page.count(f"selected {ORACLE}") == 1
    assert page.count("best of 3") >= 3
    assert "Selecting settings" in page
    for path in ("mu", "aggregator.sharpmax.gamma", "training.optimizer.adam.lr"):
        assert f'aria-label="Score on the target by {path}"' in page
    assert ORACLE in (here / "tables.md").read_text()
    run(shown, "source_risk")
    rows = pd.read_csv(board)
    assert set(rows.loc[rows["recipe"].str.endswith("by oracle"), "method"]) == {"TAR"}


REFERENCES = """\
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


def test_references_are_selected_on_labels_that_they_hold_out(tmp_path, shown, capsys):
    folder, suite = tmp_path / "s", tmp_path / "s.yaml"
    suite.write_text(REFERENCES)
    said = shown("run", suite, "--out", tmp_path, "--executor", "inline", "--quiet")
    assert "Trained with 80 labelled examples of the target: TAR, JOINT." in said
    assert "selected by target_accuracy, the score on labelled training examples of the target that are held" in said
    runs, board = mb.load_results(folder), mb.leaderboard(folder)
    scored = runs["validator:target_accuracy"].notna().groupby(runs["method"].astype(str)).all()
    assert scored.to_dict() == {"SRC": False, "TAR": True, "JOINT": True, "chance": False}
    for method in ("TAR", "JOINT"):
        tried = runs[runs["method"] == method]
        best = tried.loc[tried.groupby("seed")["validator:target_accuracy"].idxmax()]
        assert (best["candidate"] > 0).all()
        assert board.loc[board["method"] == method, "mean"].iloc[0] == pytest.approx(best["score"].mean())
    assert board.loc[board["reference"], "rank"].isna().all()
    assert mb.compare(runs).empty
    # Another criterion does not select them anew.
    own = board.set_index("method")["mean"][["TAR", "JOINT"]]
    for by in ("oracle", "source_accuracy"):
        assert main(["leaderboard", str(folder), "--by", by, "--format", "csv"]) == 0
        other = pd.read_csv(io.StringIO(capsys.readouterr().out)).set_index("method")["mean"]
        assert other[["TAR", "JOINT"]].tolist() == pytest.approx(own.tolist(), abs=1e-3)
