"""`msda-bench leaderboard --merge` on folders written by the store."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.results.folder_diff import diff_folders
from msda_bench.results.folder_diff_text import verdict
from msda_bench.results.frame import load_curves, load_results
from msda_bench.results.join import join as merged_runs
from msda_bench.results.recorded import load_cells
from msda_bench.store import Outcome
from msda_bench.store.record import Curves
from msda_bench.suite.plan import Measure
from msda_bench.suite.published import find_table, known_tables
from tests.cli.conftest import texts


@pytest.fixture
def merge(tmp_path, capsys):
    """`merge(folder, ...)`: the exit code, the JSON document, and leaderboard.csv by (method, target)."""

    def run(*folders: Path, options=()):
        before = {path: path.read_bytes() for folder in folders for path in folder.rglob("*.*")}
        code = main(["leaderboard", "--merge", *map(str, folders), "--json", "--out", str(tmp_path / "out"), *options])
        assert {path: path.read_bytes() for folder in folders for path in folder.rglob("*.*")} == before
        found = json.loads(capsys.readouterr().out)
        table = csv.DictReader((tmp_path / "out/leaderboard.csv").read_text().splitlines())
        return code, found, {(row["method"], row["target"]): row for row in table}

    return run


def test_methods_are_merged(make_results, merge, tmp_path):
    a, b = make_results("mine", methods=["SRC", "DARN"]), make_results("theirs", methods=["DARN", "TAR"])
    whole = make_results("whole")
    code, found, table = merge(a, b)
    assert code == 0
    assert (found["folders"], found["suite"], found["complete"]) == ([str(a), str(b)], "toy-suite", True)
    (experiment,) = found["experiments"]
    assert [row["method"] for row in experiment["methods"]] == ["SRC", "DARN", "TAR"]
    assert texts(found, "notes") == [
        "merged from mine: SRC, DARN; seeds 0-5",
        "merged from theirs: DARN, TAR; seeds 0-5",
    ]
    assert main(["leaderboard", str(whole)]) == 0
    alone = csv.DictReader((whole / "leaderboard.csv").read_text().splitlines())
    assert list(table.values()) == [row | {"notes": "; ".join(texts(found, "notes"))} for row in alone]
    assert (tmp_path / "out/comparisons.csv").read_bytes() == (whole / "comparisons.csv").read_bytes()


def test_gains_use_the_baseline_that_folders_share(make_results, merge):
    mine = make_results("mine", methods=["DARN"])
    theirs = make_results("theirs", methods=["SRC", "TAR"], table={"baseline": "SRC"})
    _, _, table = merge(mine, theirs)
    assert (table["DARN", "x"]["baseline"], table["DARN", "x"]["gain"]) == ("SRC", "10")
    others = make_results("others", methods=["DARN"], table={"baseline": "DARN"})
    _, _, table = merge(others, theirs)
    assert (table["DARN", "x"]["baseline"], table["DARN", "x"]["gain"]) == ("", "")


def test_what_folders_say_of_a_table_stays_if_all_say_it(make_results):
    pacs, other = (find_table(name) for name in ("pacs", known_tables()[0]))
    tables = {
        "mine": {"published": pacs, "against": "DARN"},
        "theirs": {"published": pacs, "against": "DARN"},
        "others": {"published": other, "against": "SRC"},
    }
    frames = {name: load_results(make_results(name, table=table)) for name, table in tables.items()}
    for names, published, against in ((("mine", "theirs"), pacs, "DARN"), (("mine", "others"), None, None)):
        (experiment,) = merged_runs([frames[name] for name in names]).attrs["plan"].experiments
        assert (experiment.published, experiment.against) == (published, against)


def test_there_are_no_gains_if_experiments_have_different_baselines(make_results, merge):
    def other(cell, method, *_):
        return replace(cell, mu=0.5) if method == "SRC" else cell

    a = make_results("a", table={"baseline": "SRC"})
    _, _, table = merge(a, make_results("b", table={"baseline": "SRC"}, cells=other))
    assert {method for method, _ in table} == {"SRC @ a", "SRC @ b", "DARN", "TAR"}
    assert {row["baseline"] for row in table.values()} == {""}


def test_a_merged_frame_works_like_any_frame_of_runs(make_results):
    """Curves and cells are read from each run's folder; the frame can be compared and merged again."""

    def traced(record, *run):
        return replace(record, curves=Curves([["y"]], [[run[-1] / 10]], [[0.1]], [[1.0]]))

    parts = [
        load_results(make_results(name, records=traced, methods=methods))
        for name, methods in (("mine", ["SRC", "DARN"]), ("theirs", ["DARN", "TAR"]))
    ]
    merged, whole = merged_runs(parts), load_results(make_results("whole", records=traced))
    pd.testing.assert_frame_equal(merged.drop(columns="folder"), whole)
    assert set(merged["folder"]) == {runs.attrs["folder"] for runs in parts}
    pd.testing.assert_frame_equal(load_curves(merged), load_curves(whole))
    assert load_cells(merged) == load_cells(whole)
    assert verdict(diff_folders(merged, whole)).outcome == "same"
    again = merged_runs([merged, whole])
    pd.testing.assert_frame_equal(again, merged)
    assert not again.attrs["conflicts"]


def test_a_cell_of_two_experiments_needs_one_record(make_results, merge):
    """A cell of an ablation is not missing if another folder trained it for another table."""
    a = make_results("mine", table={"name": "ablation"}, records=lambda record, *run: record if run[2] else None)
    code, _, table = merge(a, make_results("theirs", methods=["SRC"]))
    assert code == 1
    assert (table["SRC", "x"]["n_ok"], table["DARN", "x"]["n_ok"]) == ("6", "5")


@pytest.mark.parametrize("squared", [False, True])
def test_results_that_differ_only_in_their_curves_are_a_conflict(make_results, merge, squared):
    def traced(risk):
        return lambda record, *_: replace(
            record,
            outcome=Outcome(10, sum_squared_error=0.5) if squared else record.outcome,
            curves=Curves([["y"]], [[risk]], [[0.1]], [[1.0]]),
        )

    table = {"task": "regression" if squared else "classification"}
    a, b, c = (
        make_results(name, methods=["SRC"], seeds=[3], records=traced(risk), table=table)
        for name, risk in (("a", 0.5), ("b", 0.5), ("c", 0.25))
    )
    assert merge(a, b)[1]["faults"] == []
    assert merge(a, c)[1]["faults"] == [
        "conflict: toy: SRC: 2 of 2 cells have another result in c than in a, which counts, first at target x, seed 3"
    ]


def test_seeds_are_merged(make_results, merge):
    a, b, c = (make_results(name, seeds=range(k, k + 2)) for name, k in (("one", 0), ("two", 2), ("three", 4)))
    code, found, table = merge(a, b, c)
    assert code == 0
    assert found["experiments"][0]["seeds"] == list(range(6))
    assert table["DARN", "average"]["n_ok"] == "6"


def test_runs_that_no_folder_has_are_missing(make_results, merge):
    a, b = make_results("mine", methods=["SRC"], seeds=range(6)), make_results("theirs", methods=["DARN"], seeds=[0])
    code, found, table = merge(a, b)
    assert code == 1
    assert (table["DARN", "x"]["n_missing"], table["SRC", "x"]["n_missing"]) == ("5", "0")
    assert [(one["method"], one["status"], one["runs"]) for one in found["experiments"][0]["not_ok"]] == [
        ("DARN", "missing", 10)
    ]


def test_another_result_of_a_cell_is_reported_and_the_first_folder_counts(make_results, merge):
    def other(record, method, target, seed):
        return replace(record, outcome=Outcome(100, n_correct=1)) if (method, seed) == ("DARN", 2) else record

    a, b = make_results("mine"), make_results("theirs", records=other)
    line = (
        "conflict: toy: DARN: 2 of 12 cells have another result in theirs than in mine, which counts, first at "
        "target x, seed 2"
    )
    code, found, table = merge(a, b)
    assert (code, found["complete"], found["faults"]) == (1, False, [line])
    assert line in texts(found, "notes")
    assert line in table["SRC", "x"]["notes"]
    assert table["DARN", "x"]["mean"] == "62.5"
    code, _, table = merge(b, a)
    assert (code, table["DARN", "x"]["mean"]) == (1, "52.3333")


def test_a_result_replaces_a_failure_without_a_conflict(make_results, merge):
    def failed(record, method, target, seed):
        return replace(record, status="failed", outcome=None, message="no") if seed == 0 else record

    a, b = make_results("mine", records=failed), make_results("theirs")
    for folders in ((a, b), (b, a)):
        code, found, table = merge(*folders)
        assert (code, found["faults"], table["SRC", "x"]["n_failed"]) == (0, [], "0")


def test_a_method_with_two_recipes_has_two_rows(make_results, merge):
    def other(cell, method, *_):
        return replace(cell, aggregator=replace(cell.aggregator, params={"gamma": 0.5})) if cell.aggregator else cell

    a, b = make_results("mine"), make_results("theirs", cells=other)
    code, found, table = merge(a, b)
    assert code == 1
    methods = [row["method"] for row in found["experiments"][0]["methods"]]
    assert methods == ["SRC", "DARN @ mine", "DARN @ theirs", "TAR"]
    assert found["faults"] == [
        "conflict: toy: DARN differs between folders, and is shown as DARN @ mine and DARN @ theirs; `compare` says why"
    ]
    assert {table[name, "x"]["n_ok"] for name in methods} == {"6"}


def test_a_method_that_is_a_reference_in_one_folder_has_two_rows(make_results, merge):
    a, b = make_results("mine", methods=["SRC", "DARN"]), make_results("theirs", methods=["SRC", "DARN"])
    path = b / "plan.json"
    plan = json.loads(path.read_bytes())
    plan["experiments"][0]["methods"][0]["reference"] = True
    path.write_text(json.dumps(plan))
    code, found, _ = merge(a, b)
    assert code == 1
    assert [row["method"] for row in found["experiments"][0]["methods"]] == ["SRC @ mine", "SRC @ theirs", "DARN"]


def test_plans_without_records_are_distinguished_by_their_keys(make_results, merge):
    def longer(cell, *_):
        return replace(cell, training=cell.training.model_copy(update={"epochs": 9}))

    a, b = make_results("mine", methods=["SRC"]), make_results("theirs", methods=["SRC"], cells=longer)
    for path in (b / "cells").rglob("*.json"):
        path.unlink()
    code, found, _ = merge(a, b)
    assert code == 1
    assert found["faults"] == [
        "conflict: toy: SRC differs between folders, and is shown as SRC @ mine and SRC @ theirs; `compare` says why"
    ]


def test_experiments_with_different_definitions_stay_separate(make_results, merge):
    def longer(cell, *_):
        return replace(cell, training=cell.training.model_copy(update={"epochs": 9}), sources=("x", "y", "z"))

    a, b, c = make_results("mine"), make_results("theirs", cells=longer), make_results("again", methods=["SRC"])
    code, found, _ = merge(a, b, c)
    assert code == 1
    assert [table["experiment"] for table in found["experiments"]] == ["toy @ mine + again", "toy @ theirs"]
    assert found["faults"] == [
        "conflict: toy differs between folders, and is shown as toy @ mine + again and toy @ theirs; `compare` says why"
    ]


def test_experiments_with_other_datasets_or_levels_are_not_merged(make_results, merge):
    a, b = make_results("mine"), make_results("theirs", table={"dataset": "digits"})
    assert merge(a, b)[1]["faults"] == [
        "conflict: toy differs between folders, and is shown as toy @ mine and toy @ theirs; `compare` says why"
    ]
    _, found, _ = merge(a, make_results("strict", table={"alpha": 0.01}))
    assert found["faults"] == ["conflict: toy: alpha is 0.05 in mine and 0.01 in strict; the former counts"]
    assert found["experiments"][0]["alpha"] == 0.05


def test_experiments_with_different_names_follow_each_other(make_results, merge):
    a, b = make_results("mine"), make_results("theirs", table={"name": "other", "notes": ("small",)}, suite="more")
    code, found, _ = merge(a, b)
    assert (code, found["suite"]) == (0, "toy-suite + more")
    assert [(name, texts(found, "notes", name)[0]) for name in ("toy", "other")] == [
        ("toy", "merged from mine: SRC, DARN, TAR; seeds 0-5"),
        ("other", "small"),
    ]


def test_folders_of_equal_names_are_distinguished_by_their_paths(make_results, merge, tmp_path):
    a, b = make_results("one/results", methods=["SRC"]), make_results("two/results", methods=["DARN"])
    _, found, _ = merge(a, b)
    assert texts(found, "notes")[1] == f"merged from {tmp_path / 'two/results'}: DARN; seeds 0-5"


def test_without_an_output_folder_tables_are_printed_but_not_written(make_results, capsys):
    a, b = make_results("mine", methods=["SRC"]), make_results("theirs", methods=["DARN"])
    assert main(["leaderboard", "--merge", str(a), str(b)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "note: merged from theirs: DARN; seeds 0-5" in lines
    assert [line.split()[:1] for line in lines if "62.50" in line and "mean" not in line] == [["DARN"]]
    assert not list(a.parent.rglob("*.csv"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "leaderboard: name one result folder, or several after --merge"),
        (["mine", "--merge", "mine", "theirs"], "leaderboard: name one result folder, or several after --merge"),
        (["--merge", "mine"], "--merge needs two or more result folders"),
        (["--merge", "mine", "mine/../mine"], "mine: is named twice; name different result folders"),
        (["mine", "--out", "out"], "--out is for --merge; the files of one result folder are in it"),
        *(
            (
                ["--merge", "mine", "theirs", "--out", out],
                f"--out {out}: would write into the result folder HERE/theirs",
            )
            for out in ("theirs", "theirs/more", "mine/../theirs")
        ),
    ],
)
def test_bad_usage_is_reported_in_one_line(make_results, monkeypatch, arguments, words, capsys):
    folder = make_results("mine", methods=["SRC"], seeds=[0])
    make_results("theirs", methods=["SRC"], seeds=[0])
    monkeypatch.chdir(folder.parent)
    assert main(["leaderboard", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.split(", whose")[0] == f"msda-bench: error: {words}".replace("HERE", str(folder.parent))
    assert not Path("out").exists()


@pytest.mark.parametrize("first", ["plain", "by_f1"])
def test_each_experiment_uses_its_own_metric_for_shared_cells(make_results, merge, capsys, first):
    def counted(record, *_):
        right = record.outcome.n_correct
        return replace(record, outcome=Outcome(100, right, confusion=((0, 0, right), (0, 1, 100 - right))))

    by_f1 = {"metric": Measure("macro_f1", "macro F1", higher_is_better=True, percent=True)}
    folders = [
        make_results("plain", methods=["SRC", "DARN"], records=counted),
        make_results("by_f1", methods=["SRC", "DARN"], records=counted, table=by_f1),
    ]
    alone = {path.name: mb.leaderboard(path) for path in folders}
    merged = merged_runs([load_results(path) for path in sorted(folders, key=lambda path: path.name != first)])
    board = mb.leaderboard(merged)
    for name, expected in alone.items():
        found = board[board["experiment"] == f"toy @ {name}"]
        columns = ["target", "method", "metric", "mean", "rank", "n_ok"]
        assert found[columns].to_numpy().tolist() == expected[columns].to_numpy().tolist()
        rows = merged[merged["experiment"] == f"toy @ {name}"]
        assert rows["score"].tolist() == load_results(folders[name == "by_f1"])["score"].tolist()
    assert merge(*folders)[0] == 1  # they stay apart, which is named
    assert main(["compare", *map(str, folders)]) == 2
    why = "toy: uses accuracy in A and macro_f1 in B; name one metric for both with --metric"
    assert why in capsys.readouterr().err
    assert main(["compare", *map(str, folders), "--metric", "macro_f1"]) == 0
