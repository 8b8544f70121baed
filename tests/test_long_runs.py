"""The table of longer, faster and more precise runs is what was recorded, and its runs differ by their change alone."""

import numpy as np
import pandas as pd
import pytest

import long_runs
import msda_bench as mb
from long_runs import CHANGES, PLAN, SCORES, TASKS, Part, suite_of
from msda_bench.cli.main import main
from tests.own import npz, suite
from tests.reader import ROOT, text_of


def test_the_table_of_the_page_is_what_was_recorded():
    scores = pd.read_csv(SCORES)
    assert not scores.duplicated(["change", *long_runs.PLACE]).any()
    table = long_runs.written(long_runs.table(scores))
    page = text_of("docs/reproduction.md")
    assert "\n".join(table) in page


def test_recorded_runs_are_those_of_the_suites_that_are_changed(tmp_path, capsys):
    recorded = long_runs.recorded()
    for name, task in TASKS.items():
        unchanged = suite_of(task, Part((name,), "", "0"))
        its = recorded[(recorded["task"] == name) & (recorded["change"] == "")]
        assert its.groupby(["method", "target"]).size().eq(20).all(), name
        assert {*task.methods} <= {*its["method"]}, name
        assert {*task.targets} <= {*its["target"]}, name
        for change in CHANGES:
            new = suite_of(task, Part((name,), change, "0"))
            differs = [key for key in new if new[key] != unchanged[key]]
            wanted = {"float64": ["name", "backbone", "methods"], "two threads": ["name", "backbone"]}
            assert sorted(differs) == sorted(wanted.get(change, ["name", "training"])), (name, change)


def test_the_plan_names_what_there_is():
    for part in PLAN:
        assert part.change in CHANGES
        for name in part.tasks:
            assert {*part.methods} <= {*TASKS[name].methods}


def test_ranks_are_compared_at_equal_places():
    before = pd.DataFrame(
        [
            ("t", "", target, method, seed, score + seed)
            for target in "ab"
            for seed in range(4)
            for method, score in (("one", 10.0), ("two", 20.0))
        ],
        columns=long_runs.COLUMNS,
    )
    after = before[before["seed"] < 2].assign(change="float64")
    after.loc[after["method"] == "one", "score"] += 30
    both = after.merge(before, on=long_runs.PLACE, suffixes=("", "_before"))
    row = long_runs._row("t", "float64", both["score_before"], both, before)
    assert (row["ranks"], row["methods"], row["seeds"], row["targets"]) == (2, 2, 2, 2)
    assert (row["method"], row["difference"]) == ("one", pytest.approx(30))
    assert row["sd"] == pytest.approx(np.std(range(4), ddof=1))


def test_float64_and_threads_are_networks_of_a_package(tmp_path, install):
    code = ROOT / "studies" / "long-runs" / "double" / "src" / "msda_bench_double.py"
    install("msda-bench-double", code.read_text())
    scores = {}
    for network, critics, more in (("mlp", "d_A", {}), ("mlp64", "d_A64", {}), ("mlp_threads", "d_A", {"threads": 3})):
        folder = tmp_path / network
        folder.mkdir()
        (folder / "features.npz").write_bytes(npz(site=np.arange(16) // 4))
        path = suite(
            folder,
            {"arrays": {"file": "features.npz", "inputs": "x", "labels": "y", "domains": "site"}},
            backbone={network: {"hidden": [4], "dropout": 0.2, **more}},
            methods={"DARN": {"discrepancy": critics, "mu": 0.01, "aggregator": {"sharpmax": {"gamma": 0.9}}}},
        )
        assert main(["run", path, "--out", str(folder / "out"), "--device", "cpu", "--executor", "inline"]) == 0
        runs = mb.load_results(folder / "out" / "mine")
        scores[network] = runs["score"].tolist()
        threads = str(runs["put_back"].tolist())
        assert ("torch's number of threads" in threads) == (network == "mlp_threads")
    assert scores["mlp"] == scores["mlp64"] == scores["mlp_threads"]
