"""A suite that selects settings, end to end with the real engine."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.results.criteria import CANDIDATE_COLUMNS, COLUMNS
from msda_bench.store import Store
from tests.cli.conftest import texts

SUITE = """
schema: 1
name: tiny
dataset: {sine: {train: 20, test: 20}}
targets: [target_0, target_1]
seeds: 2
backbone: linear
training: {epochs: 1, batch: 5, steps: 2, optimizer: {adam: {lr: 0.01}}}
methods:
  SRC: {scheme: pooled}
  TAR: {scheme: target_only, reference: true}
  DARN: {discrepancy: spectral_l2, mu: 0.01, aggregator: sharpmax, search: {aggregator.sharpmax.gamma: [0.1, 10.0]}}
select:
  how: random
  budget: 3
  by: BY
  space: {training.optimizer.adam.lr: [0.01, 0.1, 0.3], mu: {log: [0.001, 0.1]}}
  leave_one_source_out: true
validators: [source_risk]
"""


def run(by: str = "source_risk", *options: str) -> int:
    Path("tiny.yaml").write_text(SUITE.replace("BY", by))
    return main(["run", "tiny.yaml", "--device", "cpu", "--executor", "inline", *options])


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


def test_another_criterion_trains_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in here.rglob("cells/*/*.json")}
    tables = {}
    for by in ("leave_one_source_out", "oracle", "source_risk"):
        assert run(by, "--json") == 0
        tables[by] = json.loads(capsys.readouterr().out)
        assert tables[by]["run"]["trained"] == 0
    assert {path: path.stat().st_mtime_ns for path in here.rglob("cells/*/*.json")} == before
    means = {by: [row["mean"] for row in table["tables"][0]["rows"]] for by, table in tables.items()}
    assert all(
        oracle <= other for other in means.values() for oracle, other in zip(means["oracle"], other, strict=True)
    )


def test_the_oracle_is_named_in_every_output(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("oracle") == 0
    name = "by oracle, the score on the target's own test labels"
    assert f"note: Settings selected {name}" in capsys.readouterr().out
    leaderboard = rows(here / "leaderboard.csv")
    assert all(row["recipe"].endswith("by oracle") and name in row["notes"] for row in leaderboard)
    assert main(["report", "results/tiny"]) == 0
    page = (here / "report.html").read_text()
    assert page.replace("&#39;", "'").count(f"selected {name}") == 1
    assert page.count("best of 3") >= 3
    assert name in (here / "tables.md").read_text()
    assert run("source_risk") == 0
    assert "oracle" not in [
        row["recipe"].rpartition(" ")[2] for row in rows(here / "leaderboard.csv") if row["method"] != "TAR"
    ]


def test_criteria_are_printed_and_written(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selection", "results/tiny"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for text in (
        "source_risk *",
        "leave_one_source_out",
        "chance",
        "oracle: the candidate best on the target's own",
    ):
        assert text in printed
    found = rows(here / "selection.csv")
    assert tuple(found[0]) == COLUMNS
    assert {row["criterion"] for row in found if row["target_labels"] == "true"} == {"oracle"}
    assert {row["criterion"] for row in found if row["selects"] == "true"} == {"source_risk"}
    assert all(float(row["regret"]) >= 0 for row in found)
    selects = {(row["target"], row["method"]): row["mean"] for row in found if row["selects"] == "true"}
    leaderboard = {(row["target"], row["method"]): row["mean"] for row in rows(here / "leaderboard.csv")}
    assert all(leaderboard[at] == mean for at, mean in selects.items() if at[1] != "all methods")
    candidates = rows(here / "candidates.csv")
    assert tuple(candidates[0]) == CANDIDATE_COLUMNS
    assert len(candidates) == 3 * 3 * 3 * 3  # methods, candidates, criteria, targets and their mean
    assert {
        sum(int(row["n_selected"]) for row in candidates if (row["method"], row["criterion"], row["target"]) == at)
        for at in {(row["method"], row["criterion"], "target_0") for row in candidates if row["method"] != "TAR"}
    } == {2}


def test_the_page_has_the_criteria_and_curves(here: Path) -> None:
    assert main(["report", "results/tiny"]) == 0
    page = (here / "report.html").read_text()
    assert "Selecting settings" in page
    for path in ("mu", "aggregator.sharpmax.gamma", "training.optimizer.adam.lr"):
        assert f'aria-label="Score on the target by {path}"' in page
    assert "the candidate best on the target&#39;s own test labels" in page


def test_the_figure_is_reproducible(here: Path) -> None:
    written = []
    for _ in range(2):
        assert main(["selection", "results/tiny", "--quiet"]) == 0
        written.append((here / "selection-tiny.svg").read_bytes())
    assert written[0] == written[1]
    for text in (b"aggregator.sharpmax.gamma", b"mu", b"training.optimizer.adam.lr", b"regret to the oracle"):
        assert text in written[0]


def test_json_output_is_one_document(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selection", "results/tiny", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["command"], document["suite"], document["faults"]) == ("selection", "tiny", [])
    assert set(COLUMNS) == set(document["tables"][0]["rows"][0])
    assert any("Settings selected by source_risk" in note for note in texts(document, "notes"))


def test_a_candidate_that_is_missing_is_reported(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], lose: Callable[..., Path]
) -> None:
    folder = lose(here, tmp_path / "less")
    assert main(["selection", str(folder)]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "their runs count as missing: SRC 1 of 12" in printed
    assert "problem: tiny: SRC: 1 of 4 runs missing, first at target target_0, seed 0" in printed
    assert main(["leaderboard", str(folder)]) == 1
    assert "their runs count as missing: SRC 1 of 12" in " ".join(capsys.readouterr().out.split())


@pytest.fixture
def lose() -> Callable[..., Path]:
    """A copy of a result folder without the first candidate."""
    import shutil

    def lose(folder: Path, copy: Path) -> Path:
        shutil.copytree(folder, copy)
        store = Store(copy)
        store.path(store.read_plan().cells[0].key).unlink()
        return copy

    return lose


def test_folders_that_select_are_not_merged(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    shutil.copytree(here, tmp_path / "copy")
    assert main(["leaderboard", "--merge", str(here), str(tmp_path / "copy")]) == 2
    reported = "selects settings among candidates, which cannot share a table with other folders"
    assert reported in capsys.readouterr().err


def test_two_folders_that_select_are_compared(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    shutil.copytree(here, tmp_path / "copy")
    assert main(["compare", str(here), str(tmp_path / "copy")]) == 0
    assert "lack" not in capsys.readouterr().out


def test_a_folder_without_a_search_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    start = SUITE.index("select:")
    text = SUITE[:start].replace(", search: {aggregator.sharpmax.gamma: [0.1, 10.0]}", "")
    Path("plain.yaml").write_text(text)
    assert main(["run", "plain.yaml", "--device", "cpu", "--executor", "inline", "--only", "method=SRC,seed=0"]) == 0
    assert main(["selection", "results/tiny"]) == 2
    assert "no settings were selected here; add `select` to the suite" in capsys.readouterr().err
