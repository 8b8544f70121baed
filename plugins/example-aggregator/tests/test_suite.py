"""The installed plugin is listed and runs in a suite, under the name of its distribution."""

import csv
import subprocess
import sysconfig
from pathlib import Path

import msda_bench as mb

FOLDER = Path(__file__).parent.parent
DISTRIBUTION = ("msda-bench-example-aggregator", "1.0.0")
PROGRAM = Path(sysconfig.get_path("scripts")) / "msda-bench"


def msda_bench(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_is_listed():
    rows = [line.split() for line in msda_bench("plugins").splitlines()]
    (row,) = [row for row in rows if row[:2] == ["aggregator", "inverse_risk"]]
    assert tuple(row[3:5]) == DISTRIBUTION


def test_runs_in_a_suite(tmp_path):
    msda_bench("run", FOLDER / "suite.yaml", "--out", tmp_path, "--executor", "inline")
    results = tmp_path / "example-aggregator"
    with (results / "leaderboard.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "InverseRisk"]
    assert "average" in {row["target"] for row in rows}
    assert all(row["n_ok"] == row["n_planned"] == "2" for row in rows)
    assert all(float(row["mean"]) >= 0 for row in rows)
    assert all(" ".join(DISTRIBUTION) in row["distributions"] for row in rows)
    assert mb.load_results(results)["distributions"].str.contains(" ".join(DISTRIBUTION), regex=False).any()
