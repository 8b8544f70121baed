"""A suite that selects settings, end to end with the real engine."""

import csv
from pathlib import Path

import pytest

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


def run(by="source_risk", *options):
    Path("tiny.yaml").write_text(SELECTING.replace("BY", by))
    return main([*INLINE, *options])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run() == 0
    return folder


@pytest.fixture
def here(trained, monkeypatch):
    monkeypatch.chdir(trained)
    return trained / "results" / "tiny"


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_another_criterion_trains_nothing_and_the_oracle_is_named_in_every_output(here, capsys):
    before = lines_of(here)
    means = {}
    for by in ("source_risk", "oracle"):
        assert run(by) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert " trained" not in printed
        means[by] = [float(row["mean"]) for row in rows(here / "leaderboard.csv")]
    assert lines_of(here) == before
    assert all(best <= other for each in means.values() for best, other in zip(means["oracle"], each, strict=True))
    assert f"Settings selected {ORACLE}" in printed
    assert all(row["recipe"].endswith("by oracle") and ORACLE in row["notes"] for row in rows(here / "leaderboard.csv"))
    assert main(["report", "results/tiny"]) == 0
    page = (here / "report.html").read_text().replace("&#39;", "'")
    assert page.count(f"selected {ORACLE}") == 1
    assert page.count("best of 3") >= 3
    assert "Selecting settings" in page
    for path in ("mu", "aggregator.sharpmax.gamma", "training.optimizer.adam.lr"):
        assert f'aria-label="Score on the target by {path}"' in page
    assert ORACLE in (here / "tables.md").read_text()
    assert run("source_risk") == 0
    recipes = {row["method"]: row["recipe"] for row in rows(here / "leaderboard.csv")}
    assert {method for method, recipe in recipes.items() if recipe.endswith("by oracle")} == {"TAR"}
