"""The output of `run` with --json and --quiet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.engine import machine
from msda_bench.store import Store

SUITE = """
schema: 1
name: tiny
dataset: {sine: {train: 10, test: 10}}
targets: [target_0]
seeds: 2
backbone: linear
training: {epochs: 1, batch: 5, steps: 1, optimizer: {adam: {lr: 0.01}}}
methods:
  SRC: {scheme: pooled}
  THEIRS: {aggregator: NAME}
"""
TALKER = """
    from dataclasses import replace
    from msda_bench.api import Aggregate, Aggregator, component, hookimpl

    @component
    class Talker(Aggregator):
        name = "talker"

        def __call__(self, risks, gaps, mu, state):
            print("I talk")
            weights = risks.new_full(risks.shape, 1 / len(risks))
            return Aggregate(risks.mean(), weights, state)

    @component
    class Faulty(Talker):
        name = "faulty"

        def __call__(self, risks, gaps, mu, state):
            raise ValueError("a bug")

    @hookimpl
    def msda_aggregators():
        return [Talker, Faulty]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, install) -> None:
    monkeypatch.chdir(tmp_path)
    install("theirs", TALKER)


def run(name: str, *options: str) -> int:
    Path("tiny.yaml").write_text(SUITE.replace("NAME", name))
    return main(["run", "tiny.yaml", "--device", "cpu", "--executor", "inline", *options])


def test_only_the_document_is_on_stdout_and_all_commands_give_equal_tables(capsys):
    assert run("talker", "--json") == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert (found["schema"], found["command"], found["complete"]) == (4, "run", True)
    assert found["folders"] == ["results/tiny"]
    assert [row["method"] for row in found["tables"][0]["rows"]] == ["SRC", "THEIRS"]
    assert {name: found["run"][name] for name in ("complete", "selected", "trained", "failed", "missing")} == {
        "complete": True,
        "selected": 4,
        "trained": 4,
        "failed": [],
        "missing": 0,
    }
    assert "I talk" in shown.err
    assert "4 cells to train, 0 stored" in shown.err
    assert "results/tiny: 4 of 4 cells selected: 4 trained" in shown.err
    written = Path("results/tiny/leaderboard.csv").read_bytes()
    assert main(["leaderboard", "results/tiny", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tables"] == found["tables"]
    assert Path("results/tiny/leaderboard.csv").read_bytes() == written


def test_cells_that_fail_are_in_the_document(capsys):
    assert run("faulty", "--keep-going", "--json", "--quiet") == 1
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert shown.err == ""
    assert (found["complete"], found["run"]["complete"], found["run"]["missing"]) == (False, False, 2)
    assert {one["message"] for one in found["run"]["failed"]} == {"theirs.py:19: ValueError: a bug"}
    kept = [Path(one["traceback"]) for one in found["run"]["failed"]]
    assert all(
        "ValueError: a bug" in json.loads(path.read_text())["record"]["provenance"]["traceback"] for path in kept
    )
    (problem,) = found["experiments"][0]["not_ok"]
    assert (problem["method"], problem["status"], problem["runs"]) == ("THEIRS", "failed", 2)


def test_quiet_hides_progress_and_explanations_but_no_problem(capsys):
    assert run("faulty", "--keep-going", "--quiet") == 1
    shown = capsys.readouterr()
    assert shown.err == ""
    lines = shown.out.replace("\n  ", " ").splitlines()
    where = "theirs.py:19: ValueError: a bug"
    assert f"problem: tiny: THEIRS: 2 of 2 runs failed, first at target target_0, seed 0: {where}" in lines
    (kept,) = [line for line in lines if "traceback" in line]
    assert kept.startswith("the first of 2 tracebacks is in results/tiny/cells/")
    assert Path(kept.partition(" is in ")[2].partition(",")[0]).is_file()
    assert not [line for line in lines if "has the best mean" in line or "cells selected" in line]


def test_progress_names_the_authors_line_and_the_file_with_the_traceback(capsys):
    assert run("faulty", "--keep-going") == 1
    reported = [
        line for line in capsys.readouterr().err.splitlines() if "failed: theirs.py:19: ValueError: a bug" in line
    ]
    assert len(reported) == 2
    assert all("Traceback" in Path(line.partition("; traceback in ")[2]).read_text() for line in reported)


def test_quiet_keeps_warnings(capsys, monkeypatch):
    monkeypatch.setattr(machine, "can_compile", lambda: False)
    assert run("talker", "--quiet") == 0
    first = capsys.readouterr()
    assert first.err.splitlines() == [
        "msda-bench: numba cannot be used here: runs on the CPU take the slower plain loops, which round differently"
    ]
    slow = "trained without numba, by plain loops, which are slower and round differently: all runs"
    assert f"note: {slow}" in first.out.replace("\n  ", " ").splitlines()
    assert slow in Path("results/tiny/leaderboard.csv").read_text()
    Path("results/tiny/plan.json").write_text("{")
    assert run("talker", "--quiet") == 0
    assert "plan.json: is damaged" in capsys.readouterr().err


def test_a_dry_run_prints_its_plan_as_json(capsys):
    assert run("talker", "--dry-run", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["dry_run"], found["folders"], found["suite"]) == (True, ["results/tiny"], "tiny")
    assert (found["stored"], found["to_train"], found["left"]) == (0, 4, 0)
    assert found["tables"][0]["rows"] == [
        {"experiment": "tiny", "method": "SRC", "stored": 0, "to_train": 2},
        {"experiment": "tiny", "method": "THEIRS", "stored": 0, "to_train": 2},
    ]
    assert not Path("results").exists()


def test_a_validator_that_fails_is_reported_under_the_table(capsys, install):
    install(
        "judge",
        """
        from msda_bench.api import Validator, component, hookimpl

        @component
        class Judge(Validator):
            name = "judge"

            def score(self, view):
                raise KeyError("no")

        @hookimpl
        def msda_validators():
            return [Judge]
        """,
    )
    Path("tiny.yaml").write_text(SUITE.replace("NAME", "talker") + "validators: [judge]\n")
    assert main(["run", "tiny.yaml", "--device", "cpu", "--executor", "inline", "--quiet"]) == 0
    lines = capsys.readouterr().out.replace("\n  ", " ").splitlines()
    found = [line for line in lines if line.startswith("note: without a validator's score: ")]
    assert [line.split(": ")[2].split(",")[0] for line in found] == ["SRC", "THEIRS"]
    assert all("validator 'judge' at judge.py:9 raised KeyError: 'no'" in line for line in found)
    (record, *_) = Store(Path("results/tiny")).results(Store(Path("results/tiny")).keys()).values()
    assert record.status == "ok"
    assert record.provenance["traceback"].endswith("KeyError: 'no'\n")
