"""What a frame says is what the records say, as they are now."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.store import Outcome, Record, Store
from tests.logs import lines_of, records_of, relog

RESULTS = Path(__file__).parents[2] / "results" / "ablation-digits-scale"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(RESULTS, tmp_path / "results")


@pytest.fixture
def record(folder: Path) -> Record:
    """A record of the folder."""
    return [*records_of(folder).values()][2]


def test_the_frame_has_what_the_records_say_and_loading_changes_no_file(folder):
    before = sorted(folder.rglob("*"))
    runs = mb.load_results(folder).set_index("key")
    assert sorted(folder.rglob("*")) == before
    for key, record in records_of(folder).items():
        run = runs.loc[key]
        assert (run["status"], run["n_test"], run["n_correct"]) == (
            "ok", record.outcome.n_test, record.outcome.n_correct,
        )  # fmt: skip
        assert (run["steps"], run["train_seconds"]) == (record.timing["steps"], record.timing["train"])
        assert (run["torch"], run["stack"]) == (record.provenance["torch"], record.provenance["stack"])
        assert bool(run["target_labels"]) == record.target_labels
        assert {f"version:{name}": run[f"version:{name}"] for name in record.provenance["distributions"]} == {
            f"version:{name}": version for name, version in record.provenance["distributions"].items()
        }
        assert {name: run[f"validator:{name}"] for name in record.validation} == record.validation


def test_another_result_of_a_cell_is_reported(folder, record):
    path = Store(folder).publish(replace(record, outcome=Outcome(10, 9)))
    runs = mb.load_results(folder)
    assert runs.attrs["conflicting"] == (record.key,)
    assert runs.attrs["fault_lines"] == (f"{path}: another result for the same cell, {record.key}",)


def test_damage_is_reported_until_the_cell_is_trained_again(folder, record):
    relog(folder, {record.key: lines_of(folder)[record.key].replace(b'"n_test":', b'"n_test":1')})
    Store(folder).publish(replace(record, status="failed", outcome=None, message="no memory"))  # hides nothing
    for _ in range(2):
        runs = mb.load_results(folder)
        assert runs.attrs["damaged"] == (record.key,)
        assert runs.set_index("key").loc[record.key, ["status", "message"]].tolist() == ["failed", "no memory"]
    Store(folder).publish(record)
    runs = mb.load_results(folder)
    assert (runs["status"] == "ok").all()
    assert not runs.attrs["damaged"]


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"n_test":', b'"n_test":1'),
        lambda line: line[:-9] + b"x" * 8 + b"\n",
        lambda line: line[:100] + b"\n",
        lambda _: b"{}\n",
    ],
)
def test_a_changed_byte_is_seen_by_the_next_load(folder, record, change):
    mb.load_results(folder)
    path = relog(folder, {record.key: change(lines_of(folder)[record.key])})
    runs = mb.load_results(folder)
    assert runs.loc[runs["status"] == "missing", "key"].tolist() == [record.key]
    assert [str(path) in line for line in runs.attrs["fault_lines"]] == [True]
    assert main(["store", "verify", str(folder)]) == 1
