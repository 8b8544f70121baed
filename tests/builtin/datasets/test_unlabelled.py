"""A target without any labels: methods train, validators choose, and nothing claims to know how good they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import msda_bench as mb
from msda_bench.cli.main import main

ROWS = 80
SUITE = """\
schema: 1
name: s
dataset: {table: {file: t.csv, domain: site, label: ill, unlabelled: target, protocol: transductive}}
targets: [d]
seeds: 6
backbone: {mlp: {hidden: [8]}}
training: {epochs: 2, steps: 5, batch: 8, optimizer: {adam: {lr: 0.01}}}
keep: [predictions]
validators: [source_accuracy, bnm]
select: {how: grid, budget: 2, by: bnm, space: {training.optimizer.adam.lr: [0.001, 0.01]}}
methods:
  SRC:    {scheme: pooled}
  BNM:    {scheme: {regularised: {by: bnm, weight: 0.1}}}
  forest: {scheme: {random_forest: {n_estimators: 20}}}
compare: {against: SRC}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of four sites, of which d has no label, and a one row without."""
    rng = np.random.default_rng(0)
    lines = ["site,ill,age,dose"]
    for site in "abcd":
        for row in range(ROWS):
            ill = row % 3 > 0
            label = "" if site == "d" or (site, row) == ("a", 5) else "yes" if ill else "no"
            lines.append(f"{site},{label},{rng.normal() + 2 * ill:.3f},{rng.normal():.3f}")
    (tmp_path / "t.csv").write_text("\n".join(lines))
    path = tmp_path / "s.yaml"
    path.write_text(SUITE)
    return path


@pytest.mark.slow
def test_it_trains_validators_choose_and_no_score_is_claimed(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = suite.parent / "out"
    assert main(["validate", str(suite)]) == 0
    assert "without labels, targets only: d" in capsys.readouterr().out
    assert main(["run", str(suite), "--out", str(out), "--executor", "inline"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "How good a method is at d, and which is best, cannot be known: there are no labels." in said
    assert "best mean" not in said
    runs = mb.load_results(out / "s")
    assert (runs["status"] == "ok").all()
    assert runs["score"].isna().all()
    assert runs["validator:bnm"].notna().all()
    for command in ("leaderboard", "compare", "sources", "store verify --strict"):
        assert main([*command.split(), str(out / "s")]) == 0, command
    assert main(["report", str(out / "s")]) == 0
    assert "cannot be known: there are no labels" in (out / "s" / "report.html").read_text()
    # Every row gets an answer of the candidate that the criterion chose.
    answers = mb.load_predictions(out / "s")
    assert (answers["label"] == -1).all()
    for _, of_run in answers.groupby(["method", "seed"], observed=True):
        assert sorted(of_run["row"]) == list(range(ROWS))
    forest = answers[(answers["method"] == "forest") & (answers["seed"] == 0)].sort_values("row")
    assert (forest["predicted"].to_numpy() == (np.arange(ROWS) % 3 > 0)).mean() > 0.7  # 1 is the class yes


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("targets: [d]", "targets: all"), "targets: 'd' has no labels to be tested on"),
        (
            ("  SRC: ", "  TAR: {scheme: target_only, reference: true}\n  SRC: "),
            "target_only needs labels of target 'd'",
        ),
        (("seeds: 6", "seeds: 6\nlabelled_target: 5"), "labelled_target: needs labels of target 'd', which has none"),
        (("by: bnm, space", "by: oracle, space"), "select.by: oracle needs labels of target 'd'"),
        (
            ("transductive}", "transductive, label_shift: {domain: target, shares: [0.5, 0.5]}}"),
            "label_shift.domain: needs labels of target 'd'",
        ),
        (("unlabelled: target, ", ""), "81 rows have no label"),
    ],
)
def test_what_needs_its_labels_is_refused_in_one_line(
    suite: Path, change: tuple[str, str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.write_text(SUITE.replace(*change))
    assert main(["validate", str(suite)]) == 2
    assert says in capsys.readouterr().err
