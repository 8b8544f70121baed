"""The analysis of a large folder is read back as long as nothing changes, and never for other runs."""

from __future__ import annotations

import hashlib
import json
import shutil
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import pytest

from msda_bench.results import kept
from msda_bench.results.files import write_results
from msda_bench.results.frame import load_results
from msda_bench.results.kept import ANALYSIS, analysed, keep
from msda_bench.results.leaderboard import analyse
from tests.results.conftest import frame_of, planned

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small folder whose analysis is kept like that of a large one, and contains a mean that no run has."""
    monkeypatch.setattr(kept, "FEWEST", 1)
    path = tmp_path / "results"
    shutil.copytree(RESULTS / "ablation-epoch", path)
    found = analysed(load_results(path))
    assert (path / ANALYSIS).exists()  # although no tables were written yet
    write_results(path, found)
    _, data = (path / ANALYSIS).read_bytes().split(b"\n")
    document = json.loads(data)
    document["leaderboard"]["mean"][1][0] = -1.0
    forged = json.dumps(document).encode()
    (path / ANALYSIS).write_bytes(hashlib.sha256(forged).hexdigest().encode() + b"\n" + forged)
    return path


def is_read_back(path: Path) -> bool:
    return bool(analysed(load_results(path)).leaderboard["mean"][0] == -1)


def lose_a_record(path: Path) -> None:
    next((path / "cells").glob("*/*.json")).unlink()


def rewrite_the_plan(path: Path) -> None:
    shutil.copy2(path / "plan.json", path / "x")
    (path / "x").replace(path / "plan.json")


def copy(path: Path) -> None:
    shutil.move(path, path.with_name("x"))
    shutil.copytree(path.with_name("x"), path)


def damage(path: Path) -> None:
    (path / ANALYSIS).write_bytes((path / ANALYSIS).read_bytes().replace(b"-1.0", b"-1.5"))


def replace_with_a_link(path: Path) -> None:
    (path / ANALYSIS).rename(path / "x")
    (path / ANALYSIS).symlink_to("x")


def change_the_statistics(path: Path) -> None:
    document = json.loads((path / ANALYSIS).read_bytes().split(b"\n")[1]) | {"of": "other code's"}
    data = json.dumps(document).encode()
    (path / ANALYSIS).write_bytes(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)


@pytest.mark.parametrize(
    "change", [lose_a_record, rewrite_the_plan, copy, damage, replace_with_a_link, change_the_statistics]
)
def test_an_analysis_is_read_back_until_something_changes(folder, change):
    assert is_read_back(folder)
    change(folder)
    assert not is_read_back(folder)


@pytest.mark.parametrize("library", ["msda-bench", "numpy", "pandas", "tabulate"])
def test_another_version_of_the_statistics_recomputes_the_analysis(folder, library, monkeypatch):
    assert is_read_back(folder)
    monkeypatch.setattr(kept, "__version__", "0") if library == "msda-bench" else monkeypatch.setattr(
        kept, "version", lambda name: "0" if name == library else version(name)
    )
    assert not is_read_back(folder)


def test_a_selection_of_runs_is_analysed_again(folder):
    runs = load_results(folder)
    assert (analysed(runs[runs["seed"] != runs["seed"][0]]).leaderboard["mean"] > 0).all()


@pytest.mark.parametrize("name", ["runs.csv", "leaderboard.csv", "tables.md"])
def test_changed_files_are_written_again(folder, name):
    (folder / ANALYSIS).unlink()
    write_results(folder, analysed(load_results(folder)))
    stamps = {path: path.stat().st_ino for path in folder.glob("*.*")}
    write_results(folder, analysed(load_results(folder)))
    assert {path: path.stat().st_ino for path in folder.glob("*.*")} == stamps
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-2])
    write_results(folder, analysed(load_results(folder)))
    assert (folder / name).read_bytes() == whole


def test_the_analysis_read_back_equals_the_computed_one(tmp_path, monkeypatch, sample):
    monkeypatch.setattr(kept, "FEWEST", 1)
    datasets = [planned({"a": {"x": [90 + i, 91]}, "b": {"x": [90, 93]}}, f"e{i}", f"d{i}") for i in range(6)]
    for runs in (sample, frame_of(*datasets)):
        runs.attrs["folder"] = str(tmp_path)
        found = analyse(runs)
        keep(tmp_path, found, {"a file": b""})
        again = analysed(runs)
        assert again.files
        pd.testing.assert_frame_equal(again.leaderboard, found.leaderboard)
        pd.testing.assert_frame_equal(again.comparisons, found.comparisons)
        assert again.across == found.across
    assert found.across
