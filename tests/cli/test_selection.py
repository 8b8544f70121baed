"""A suite that selects settings, end to end with the real engine."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.results.criteria import CANDIDATE_COLUMNS, COLUMNS
from msda_bench.store import Store
from tests.cli.conftest import INLINE, SUITE

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
  leave_one_source_out: true
validators: [source_risk]
"""
)
ORACLE = "by oracle, the score on the target's own test labels"


def run(by: str = "source_risk", *options: str) -> int:
    Path("tiny.yaml").write_text(SELECTING.replace("BY", by))
    return main([*INLINE, *options])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert run() == 0
    return folder


@pytest.fixture
def here(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(trained)
    return trained / "results" / "tiny"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_another_criterion_trains_nothing_and_the_oracle_is_named_in_every_output(here: Path, capsys) -> None:
    before = {path: path.stat().st_mtime_ns for path in here.rglob("cells/*/*.json")}
    means = {}
    for by in ("leave_one_source_out", "source_risk", "oracle"):
        assert run(by) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert " trained" not in printed
        means[by] = [float(row["mean"]) for row in rows(here / "leaderboard.csv")]
    assert {path: path.stat().st_mtime_ns for path in here.rglob("cells/*/*.json")} == before
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


def test_with_another_criterion_the_note_of_the_suites_own_is_not_shown(here: Path, capsys) -> None:
    for by, said in ((), "Settings selected by source_risk"), (("--by", "oracle"), "Settings are those that oracle"):
        assert main(["leaderboard", "results/tiny", *by]) == 0
        (note,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: Settings")]
        assert note.startswith(f"note: {said}")


def test_criteria_are_printed_written_and_drawn(here: Path, capsys) -> None:
    assert main(["selection", "results/tiny"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    best = "oracle: the candidate best on the target's own"
    assert all(text in printed for text in ("source_risk *", "leave_one_source_out", "chance", best))
    criteria = rows(here / "selection.csv")
    assert tuple(criteria[0]) == COLUMNS
    assert {row["criterion"] for row in criteria if row["target_labels"] == "true"} == {"oracle"}
    assert {row["criterion"] for row in criteria if row["selects"] == "true"} == {"source_risk"}
    assert all(float(row["regret"]) >= 0 for row in criteria)
    selects = {(row["target"], row["method"]): row["mean"] for row in criteria if row["selects"] == "true"}
    leaderboard = {(row["target"], row["method"]): row["mean"] for row in rows(here / "leaderboard.csv")}
    assert all(leaderboard[at] == mean for at, mean in selects.items() if at[1] != "all methods")
    candidates = rows(here / "candidates.csv")
    assert tuple(candidates[0]) == CANDIDATE_COLUMNS
    assert len(candidates) == 3 * 3 * 3 * 3  # methods, candidates, criteria, targets and their mean
    assert {
        sum(int(row["n_selected"]) for row in candidates if (row["method"], row["criterion"], row["target"]) == at)
        for at in {(row["method"], row["criterion"], "target_0") for row in candidates if row["method"] != "TAR"}
    } == {1}
    figure = (here / "selection-tiny.svg").read_bytes()
    for text in (b"aggregator.sharpmax.gamma", b"mu", b"training.optimizer.adam.lr", b"regret to the oracle"):
        assert text in figure
    assert "Settings selected by source_risk" in printed
    assert main(["selection", "results/tiny", "--format", "csv"]) == 0
    assert capsys.readouterr().out == (here / "selection.csv").read_text()
    assert (here / "selection-tiny.svg").read_bytes() == figure


def test_a_copy_is_compared_but_not_merged_and_names_a_missing_candidate(here: Path, tmp_path: Path, capsys) -> None:
    copy = shutil.copytree(here, tmp_path / "copy")
    assert main(["compare", str(here), str(copy)]) == 0
    assert "lack" not in capsys.readouterr().out
    assert main(["leaderboard", "--merge", str(here), str(copy)]) == 2
    reported = "selects settings among candidates, which cannot share a table with other folders"
    assert reported in capsys.readouterr().err
    store = Store(copy)
    store.path(store.read_plan().cells[0].key).unlink()
    for command in ("leaderboard", "selection"):
        assert main([command, str(copy)]) == 1
        printed = " ".join(capsys.readouterr().out.split())
        assert "their runs count as missing: SRC 1 of 6" in printed
        assert "problem: tiny: SRC: 1 of 2 runs missing, first at target target_0, seed 0" in printed


def test_a_folder_without_a_search_is_reported(tiny: Path, capsys) -> None:
    assert main([*INLINE, "--only", "method=SRC,seed=0"]) == 0
    assert main(["selection", "results/tiny"]) == 2
    assert "no settings were selected here; add `select` to the suite" in capsys.readouterr().err
