from __future__ import annotations

import csv
import hashlib
import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.store import Outcome, Record, Store
from msda_bench.suite.plan import Experiment, Method, Plan, PlannedCell
from msda_bench.suite.published import find_table, known_tables

TARGETS = ("books", "dvd", "electronics", "kitchen")
TABLE = find_table("darn-2020-amazon")
KNOWN = ", ".join(known_tables())
N_TEST = 10_000
"""Large enough for accuracies with two decimals."""


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):  # a tester's colour settings must not change the tested text
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def make_folder(tmp_path):
    """A folder whose means are `off` points from the table's, with some runs missing."""

    def make(off: float = 0.0, missing: tuple = (), published=TABLE, dataset: str = "amazon", more=()) -> Path:
        methods = tuple(
            Method(name, name == "TAR", "", ()) for name in dict.fromkeys(row.method for row in TABLE.numbers)
        )
        experiment = Experiment(
            "held", dataset, "classification", TARGETS, methods, tuple(range(6)), published=published
        )
        store = Store.create(tmp_path / "results")
        cells = []
        places = product((row for row in TABLE.numbers if row.target != "average"), experiment.seeds)
        for row, seed in places:
            key = hashlib.sha256(f"{row.method} {row.target} {seed}".encode()).hexdigest()
            cells.append(PlannedCell("held", row.method, row.target, seed, key))
            accuracy = row.mean + off + (seed - 2.5) / 10
            if (row.method, row.target, seed) not in missing:
                store.publish(Record(key, {}, "ok", Outcome(N_TEST, n_correct=round(accuracy * N_TEST / 100))))
        store.write_plan(Plan("suite", (experiment, *more), tuple(cells)))
        return store.folder

    return make


OTHER = Experiment("other", "toy", "classification", ("x",), (Method("a", False, "", ()),), (0,))


def test_a_folder_that_agrees_exits_with_0(make_folder, capsys):
    folder = make_folder(0.1)
    assert main(["verify", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "held, books: accuracy in percent beside the numbers of darn-2020-amazon" in out
    row = next(line for line in out.splitlines() if line.startswith("MDMN"))
    assert " ".join(row.split()) == "MDMN 80.13 +- 0.20* [1] 80.23 +- 0.08* 6/6 +0.10 +0.5"
    last = out.splitlines()[-1]
    assert last.startswith("verdict: held: agrees: 6 of 6 averages within the published range; 24 of 24 cells within 2")
    assert last.endswith("; order of methods agrees in 10 of 10 pairs")
    rows = list(csv.DictReader((folder / "verify.csv").read_text().splitlines()))
    assert len(rows) == 30
    assert [row["difference"] for row in rows if row["target"] != "average"] == ["0.1"] * 24


def test_a_folder_that_differs_exits_with_1(make_folder, capsys):
    assert main(["verify", str(make_folder(1.2))]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(
        "verdict: held: differs: 0 of 6 averages within the published range (not SRC at average +1.20, "
    )


def test_missing_runs_are_named(make_folder, capsys):
    folder = make_folder(missing=(("DARN", "dvd", 2), ("DARN", "dvd", 4)))
    assert main(["verify", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "problem: held: DARN: 2 of 24 runs missing, first at target dvd, seed 2" in lines
    assert lines[-1].startswith("verdict: held: incomplete (2 of 144 runs are not ok): 6 of 6 averages within")


def test_only_json_is_on_stdout(make_folder, capsys):
    folder = make_folder(0.1)
    assert main(["verify", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["suite"], found["agrees"]) == (4, "suite", True)
    assert found["verified"][0]["status"] == "agrees"
    assert found["verified"][0]["cells"]["within_2_se"] == 24
    assert (folder / "verify.csv").exists()


def test_an_experiment_without_a_table_is_reported_and_does_not_count(make_folder, capsys):
    folder = make_folder(0.1, more=(OTHER,))
    assert main(["verify", str(folder)]) == 0
    assert "note: other names no published table and is not verified" in capsys.readouterr().out.splitlines()


def test_a_folder_without_a_table_is_reported_in_one_line(make_folder, capsys):
    folder = make_folder(published=None)
    assert main(["verify", str(folder)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"msda-bench: error: {folder}: its suite names no published table; give one with --table (known: "
        f"{KNOWN}, or a .csv file), or add `published:` to the suite and run it again\n"
    )
    assert not (folder / "verify.csv").exists()


def test_a_table_can_be_chosen(make_folder, tmp_path, capsys):
    folder = make_folder(0.1, published=None, more=(OTHER,))
    assert main(["verify", str(folder), "--table", "darn-2020-amazon"]) == 0
    path = tmp_path / "own.csv"
    rows = "".join(f"DARN,{target},90,a paper,Table 9,high\n" for target in (*TARGETS, "average"))
    path.write_text(f"method,target,mean,source,table,certainty\n{rows}")
    capsys.readouterr()
    assert main(["verify", str(folder), "--table", str(path)]) == 1
    assert "beside the numbers of own" in capsys.readouterr().out
    assert main(["verify", str(folder), "--table", str(path), "--format", "github", "--methods", "DARN"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("| DARN")] == ["DARN"] * 5
    assert not any("SRC" in line or "verdict" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("darn", "unknown table 'darn' (known: {known}); one of your own is a .csv file"),
        ("nowhere.csv", "nowhere.csv: no such file"),
        ("darn-2020-digits", "{folder}: has no results on any of the targets, the subject of table darn-2020-digits"),
    ],
)
def test_an_unsuitable_table_is_one_clear_line(make_folder, capsys, name, what):
    folder = make_folder()
    assert main(["verify", str(folder), "--table", name]) == 2
    assert capsys.readouterr().err == f"msda-bench: error: {what.format(folder=folder, known=KNOWN)}\n"


def test_a_damaged_record_is_reported(make_folder, capsys):
    folder = make_folder()
    path = next(iter((folder / "cells").glob("*/*.json")))
    path.write_bytes(path.read_bytes()[:-20])
    assert main(["verify", str(folder)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"msda-bench: {path}: ")
    assert "incomplete (1 of 144 runs are not ok)" in captured.out


def test_running_again_writes_equal_bytes(make_folder):
    folder = make_folder()
    main(["verify", str(folder)])
    first = (folder / "verify.csv").read_bytes()
    main(["verify", str(folder), "--json"])
    assert (folder / "verify.csv").read_bytes() == first


def test_the_csv_is_written_even_if_nobody_reads_the_output(make_folder):
    folder = make_folder(0.1)
    command = [sys.executable, "-c", "import sys; from msda_bench.cli.main import entry; sys.exit(entry())"]
    with subprocess.Popen([*command, "verify", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0
    assert (folder / "verify.csv").exists()
