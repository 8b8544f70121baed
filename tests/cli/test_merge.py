"""`msda-bench leaderboard --merge` on folders written by the store."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.results.frame import load_curves, load_results
from msda_bench.results.join import join
from msda_bench.results.recorded import load_cells
from msda_bench.store import Outcome
from msda_bench.store.record import Curves
from msda_bench.suite.plan import Measure
from msda_bench.suite.protocol import Schedule
from msda_bench.suite.published import find_table
from tests.cli.conftest import texts


@pytest.fixture
def merge(tmp_path, capsys):
    """`merge(folder, ...)`: the exit code, the JSON document, and leaderboard.csv by (method, target)."""

    def run(*folders: Path):
        before = {path: path.read_bytes() for folder in folders for path in folder.rglob("*.*")}
        code = main(["leaderboard", "--merge", *map(str, folders), "--json", "--out", str(tmp_path / "out")])
        assert {path: path.read_bytes() for folder in folders for path in folder.rglob("*.*")} == before
        document = json.loads(capsys.readouterr().out)
        table = csv.DictReader((tmp_path / "out/leaderboard.csv").read_text().splitlines())
        assert document["complete"] == (code == 0)
        return code, document, {(row["method"], row["target"]): row for row in table}

    return run


def shown_as(names: str, what: str = "toy: SRC") -> str:
    return f"conflict: {what} differs between folders, and is shown as {names}; `compare` says why"


def test_methods_are_merged(make_results, merge, tmp_path, capsys):
    a, b = make_results("mine", methods=["SRC", "DARN"]), make_results("theirs", methods=["DARN", "TAR"])
    whole = make_results("whole")
    code, document, table = merge(a, b)
    assert (code, document["folders"], document["suite"]) == (0, [str(a), str(b)], "toy-suite")
    assert [row["method"] for row in document["experiments"][0]["methods"]] == ["SRC", "DARN", "TAR"]
    notes = ["merged from mine: SRC, DARN; seeds 0-5", "merged from theirs: DARN, TAR; seeds 0-5"]
    assert texts(document, "notes") == notes
    assert main(["leaderboard", str(whole)]) == 0
    alone = csv.DictReader((whole / "leaderboard.csv").read_text().splitlines())
    assert list(table.values()) == [row | {"notes": "; ".join(notes)} for row in alone]
    assert (tmp_path / "out/comparisons.csv").read_bytes() == (whole / "comparisons.csv").read_bytes()
    capsys.readouterr()
    assert main(["leaderboard", "--merge", str(a), str(b)]) == 0
    assert f"note: {notes[1]}" in capsys.readouterr().out.splitlines()
    assert not list(a.rglob("*.csv"))


@pytest.mark.parametrize(("other", "baseline", "gain"), [("SRC", "SRC", "10"), ("DARN", "", "")])
def test_gains_use_the_baseline_that_folders_share(make_results, merge, other, baseline, gain):
    theirs = make_results("theirs", methods=["SRC", "TAR"], table={"baseline": "SRC"})
    _, _, table = merge(
        make_results("mine", methods=["DARN"], table={} if other == "SRC" else {"baseline": other}), theirs
    )
    assert (table["DARN", "x"]["baseline"], table["DARN", "x"]["gain"]) == (baseline, gain)


def test_what_folders_say_of_a_table_stays_if_all_say_it(make_results):
    pacs, other = find_table("pacs"), find_table("cwru")
    tables = {"mine": (pacs, "DARN"), "theirs": (pacs, "DARN"), "others": (other, "SRC")}
    frames = {
        name: load_results(make_results(name, table={"published": published, "against": against}))
        for name, (published, against) in tables.items()
    }
    for names, expected in ((("mine", "theirs"), (pacs, "DARN")), (("mine", "others"), (None, None))):
        (experiment,) = join([frames[name] for name in names]).attrs["plan"].experiments
        assert (experiment.published, experiment.against) == expected


def test_a_merged_frame_works_like_any_frame_of_runs(make_results):
    """Curves and cells are read from each run's folder; the frame can be merged again."""

    def traced(record, *run):
        return replace(record, curves=Curves([["y"]], [[run[-1] / 10]], [[0.1]], [[1.0]]))

    parts = [
        load_results(make_results(name, records=traced, methods=methods))
        for name, methods in (("mine", ["SRC", "DARN"]), ("theirs", ["DARN", "TAR"]))
    ]
    merged, whole = join(parts), load_results(make_results("whole", records=traced))
    pd.testing.assert_frame_equal(merged.drop(columns="folder"), whole)
    assert set(merged["folder"]) == {runs.attrs["folder"] for runs in parts}
    pd.testing.assert_frame_equal(load_curves(merged), load_curves(whole))
    assert load_cells(merged) == load_cells(whole)
    again = join([merged, whole])
    pd.testing.assert_frame_equal(again, merged)
    assert not again.attrs["conflicts"]


def test_a_cell_of_two_experiments_needs_one_record(make_results, merge):
    """A cell of an ablation is not missing if another folder trained it for another table."""
    a = make_results("mine", table={"name": "ablation"}, records=lambda record, *run: record if run[2] else None)
    code, _, table = merge(a, make_results("theirs", methods=["SRC"]))
    assert (code, table["SRC", "x"]["n_ok"], table["DARN", "x"]["n_ok"]) == (1, "6", "5")


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
    line = (
        "conflict: toy: SRC: 2 of 2 cells have another result in c than in a, which counts, first at target x, seed 3"
    )
    assert [merge(a, other)[1]["faults"] for other in (b, c)] == [[], [line]]


def test_seeds_are_merged_and_those_that_no_folder_has_are_missing(make_results, merge):
    a, b, c = (make_results(name, seeds=range(k, k + 2)) for name, k in (("one", 0), ("two", 2), ("three", 4)))
    code, document, table = merge(a, b, c)
    assert (code, document["experiments"][0]["seeds"], table["DARN", "average"]["n_ok"]) == (0, [*range(6)], "6")
    code, document, table = merge(
        make_results("SRC", methods=["SRC"]), make_results("DARN", methods=["DARN"], seeds=[0])
    )
    assert (code, table["DARN", "x"]["n_missing"], table["SRC", "x"]["n_missing"]) == (1, "5", "0")
    (missing,) = document["experiments"][0]["not_ok"]
    assert (missing["method"], missing["status"], missing["runs"]) == ("DARN", "missing", 10)


def test_another_result_of_a_cell_is_reported_and_the_first_folder_counts(make_results, merge):
    def other(record, method, target, seed):
        return replace(record, outcome=Outcome(100, n_correct=1)) if (method, seed) == ("DARN", 2) else record

    a, b = make_results("mine"), make_results("theirs", records=other)
    line = (
        "conflict: toy: DARN: 2 of 12 cells have another result in theirs than in mine, which counts, first at "
        "target x, seed 2"
    )
    code, document, table = merge(a, b)
    assert (code, document["faults"], table["DARN", "x"]["mean"]) == (1, [line], "62.5")
    assert line in texts(document, "notes")
    assert line in table["SRC", "x"]["notes"]
    code, _, table = merge(b, a)
    assert (code, table["DARN", "x"]["mean"]) == (1, "52.3333")


def test_a_result_replaces_a_failure_without_a_conflict(make_results, merge):
    def failed(record, method, target, seed):
        return replace(record, status="failed", outcome=None, message="no") if seed == 0 else record

    a, b = make_results("mine", records=failed), make_results("theirs")
    for folders in ((a, b), (b, a)):
        code, document, table = merge(*folders)
        assert (code, document["faults"], table["SRC", "x"]["n_failed"]) == (0, [], "0")


@pytest.mark.parametrize("records", [True, False])
def test_a_method_with_two_recipes_has_two_rows_and_no_common_baseline(make_results, merge, records):
    def other(cell, method, *_):
        return replace(cell, mu=0.5) if method == "SRC" else cell

    a = make_results("mine", table={"baseline": "SRC"})
    b = make_results("theirs", table={"baseline": "SRC"}, cells=other)
    for path in (b / "cells").rglob("*.json") if not records else ():
        path.unlink()  # plans without records are told apart by their keys
    code, document, table = merge(a, b)
    methods = [row["method"] for row in document["experiments"][0]["methods"]]
    assert (code, methods) == (1, ["SRC @ mine", "SRC @ theirs", "DARN", "TAR"])
    assert document["faults"] == [shown_as("SRC @ mine and SRC @ theirs")]
    assert {row["baseline"] for row in table.values()} == {""}


def test_a_method_that_is_a_reference_in_one_folder_has_two_rows(make_results, merge):
    a, b = make_results("mine", methods=["SRC", "DARN"]), make_results("theirs", methods=["SRC", "DARN"])
    path = b / "plan.json"
    plan = json.loads(path.read_bytes())
    plan["experiments"][0]["methods"][0]["reference"] = True
    path.write_text(json.dumps(plan))
    code, document, _ = merge(a, b)
    assert code == 1
    assert [row["method"] for row in document["experiments"][0]["methods"]] == ["SRC @ mine", "SRC @ theirs", "DARN"]


def test_experiments_with_different_definitions_stay_separate(make_results, merge):
    def longer(cell, *_):
        return replace(cell, training=cell.training.model_copy(update={"epochs": 9}), sources=("x", "y", "z"))

    a, b, c = make_results("mine"), make_results("theirs", cells=longer), make_results("again", methods=["SRC"])
    code, document, _ = merge(a, b, c)
    names = ["toy @ mine + again", "toy @ theirs"]
    assert (code, [table["experiment"] for table in document["experiments"]]) == (1, names)
    assert document["faults"] == [shown_as(" and ".join(names), "toy")]
    digits = make_results("digits", table={"dataset": "digits"})
    assert merge(a, digits)[1]["faults"] == [shown_as("toy @ mine and toy @ digits", "toy")]
    _, document, _ = merge(a, make_results("strict", table={"alpha": 0.01}))
    assert document["faults"] == ["conflict: toy: alpha is 0.05 in mine and 0.01 in strict; the former counts"]
    assert document["experiments"][0]["alpha"] == 0.05


def test_a_methods_own_training_is_no_other_experiment(make_results, merge):
    def own(cell, method, *_):
        changes = {"schedule": Schedule.model_validate("cosine"), "clip": 5.0}
        return replace(cell, training=cell.training.model_copy(update=changes)) if method == "DARN" else cell

    a, b = make_results("mine", methods=["SRC"]), make_results("theirs", methods=["SRC", "DARN"], cells=own)
    code, document, _ = merge(a, b)
    assert (code, document["faults"], len(document["experiments"])) == (0, [], 1)
    c = make_results("again", methods=["DARN"], cells=own)
    assert merge(a, c)[1]["faults"] == [shown_as("toy @ mine and toy @ again", "toy")]


def test_experiments_with_different_names_follow_each_other(make_results, merge, tmp_path):
    a = make_results("one/results", methods=["SRC"])
    b = make_results("two/results", methods=["SRC"], table={"name": "other", "notes": ("small",)}, suite="more")
    code, document, _ = merge(a, b)
    assert (code, document["suite"]) == (0, "toy-suite + more")
    assert [texts(document, "notes", name) for name in ("toy", "other")] == [
        [f"merged from {a}: SRC; seeds 0-5"],
        ["small", f"merged from {b}: SRC; seeds 0-5"],
    ]


def test_a_folder_may_have_a_name_that_is_no_text(make_results, merge, tmp_path):
    a, b = make_results("one", methods=["SRC"]), make_results("two", methods=["DARN"])
    odd = a.rename(a.with_name("one\udcff"))
    code, document, table = merge(odd, b)
    assert (code, {method for method, _ in table}) == (0, {"SRC", "DARN"})
    assert texts(document, "notes")[0] == "merged from one: SRC; seeds 0-5"
    if find_spec("pyarrow") is not None:
        assert set(pd.read_parquet(tmp_path / "out/runs.parquet")["folder"]) == {f"{tmp_path}/one", str(b)}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("", "leaderboard: name one result folder, or several after --merge"),
        ("mine --merge mine theirs", "leaderboard: name one result folder, or several after --merge"),
        ("--merge mine", "--merge needs two or more result folders"),
        ("--merge mine mine/../mine", "mine: is named twice; name different result folders"),
        ("mine --out out", "--out is for --merge; the files of one result folder are in it"),
        *(
            (f"--merge mine theirs --out {out}", f"--out {out}: would write into the result folder HERE/theirs")
            for out in ("theirs", "theirs/more", "mine/../theirs")
        ),
    ],
)
def test_bad_usage_is_one_line(make_results, monkeypatch, words, line, capsys):
    folder = make_results("mine", methods=["SRC"], seeds=[0])
    make_results("theirs", methods=["SRC"], seeds=[0])
    monkeypatch.chdir(folder.parent)
    assert main(["leaderboard", *words.split()]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.split(", whose")[0] == f"msda-bench: error: {line}".replace("HERE", str(folder.parent))
    assert not Path("out").exists()


@pytest.mark.parametrize("first", ["plain", "by_f1"])
def test_each_experiment_uses_its_own_metric_for_shared_cells(make_results, merge, capsys, first):
    def counted(record, *_):
        right = record.outcome.n_correct
        return replace(record, outcome=Outcome(100, right, confusion=((0, 0, right), (0, 1, 100 - right))))

    by_f1 = {"metric": Measure("macro_f1", "macro F1", higher_is_better=True, percent=True)}
    folders = [
        make_results(name, methods=["SRC", "DARN"], records=counted, table=table)
        for name, table in (("plain", {}), ("by_f1", by_f1))
    ]
    merged = join([load_results(path) for path in sorted(folders, key=lambda path: path.name != first)])
    board = mb.leaderboard(merged)
    for path in folders:
        name, expected = f"toy @ {path.name}", mb.leaderboard(path)
        columns = ["target", "method", "metric", "mean", "rank", "n_ok"]
        rows = board.loc[board["experiment"] == name, columns].to_numpy().tolist()
        assert rows == expected[columns].to_numpy().tolist()
        assert merged.loc[merged["experiment"] == name, "score"].tolist() == load_results(path)["score"].tolist()
    assert merge(*folders)[0] == 1  # they stay apart, which is named
    assert main(["compare", *map(str, folders)]) == 2
    why = "toy: uses accuracy in A and macro_f1 in B; name one metric for both with --metric"
    assert why in capsys.readouterr().err
    assert main(["compare", *map(str, folders), "--metric", "macro_f1"]) == 0
