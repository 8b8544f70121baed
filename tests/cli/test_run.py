"""`msda-bench run`, end to end with the real engine on a suite that takes seconds."""

import errno
import itertools
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from msda_bench.cli.main import main
from msda_bench.engine import machine
from msda_bench.store import Outcome, Store
from tests.cli.conftest import CELLS, ENTRY, INLINE, SUITE
from tests.logs import contents, n_lines, records_of, relog
from tests.store.faulty import faults

pytestmark = pytest.mark.usefixtures("tiny")
PLUGIN = """
    import pathlib
    from msda_bench.api import Aggregate, Aggregator, component, hookimpl

    @component
    class Talker(Aggregator):
        name = "talker"

        def __call__(self, risks, gaps, mu, state):
            if pathlib.Path("broken").exists():
                raise ValueError("a bug")
            print("I talk")
            return Aggregate(risks.mean(), risks.new_full(risks.shape, 1 / len(risks)), state)

    @hookimpl
    def msda_aggregators():
        return [Talker]
"""
BUG = "theirs.py:11: ValueError: a bug"
RESULTS = Path("results", "tiny")


def run(*options):
    return main([*INLINE, *options])


def results():
    """The records without what may differ between equal runs."""
    return {key: replace(record, timing={}, provenance={}) for key, record in records_of(RESULTS).items()}


@pytest.fixture
def talking(install):
    """The suite with an aggregator that prints, and raises while there is a file `broken`."""
    install("theirs", PLUGIN)
    Path("tiny.yaml").write_text(SUITE.replace("{sharpmax: {gamma: 1.0}}", "talker"))


def test_a_suite_is_trained_once_and_its_leaderboard_printed(capsys):
    assert run() == 0
    first = capsys.readouterr()
    assert "DARN" in first.out
    assert f"{CELLS} of {CELLS} runs selected: {CELLS} trained" in first.out
    assert len(results()) == CELLS
    before = contents(RESULTS)
    assert {"plan.json", "leaderboard.csv", "comparisons.csv"} <= before.keys()
    assert run() == 0
    again = capsys.readouterr()
    assert again.err == ""
    assert f"{CELLS} stored before" in again.out
    assert contents(RESULTS) == before
    assert run("--quiet") == 0
    quiet = capsys.readouterr()
    assert quiet.err == ""
    assert set(quiet.out.splitlines()) < set(first.out.splitlines())
    assert main(["report", "results/tiny"]) == 0
    assert (RESULTS / "report.html").read_text().count("msda-bench run tiny.yaml --device cpu") == 1


def test_a_dry_run_changes_nothing_and_parts_add_up(shown):
    planned = shown(*INLINE, "--dry-run")
    assert "tiny SRC 0 4 tiny DARN 0 4" in planned
    assert not RESULTS.exists()
    assert f"2 of {CELLS} runs selected: 2 trained" in shown(*INLINE, "--only", "method=DARN,seed=0")
    before = contents(RESULTS)
    assert "2 runs stored, 6 to train; nothing was changed" in shown(*INLINE, "--dry-run")
    assert contents(RESULTS) == before
    assert "2 stored before, 3 trained, 3 skipped by --limit" in shown(*INLINE, "--limit", "3")
    assert "5 stored before, 3 trained" in shown(*INLINE)


def test_quiet_keeps_warnings(capsys, monkeypatch):
    monkeypatch.setattr(machine, "can_compile", lambda: False)
    assert run("--quiet") == 0
    shown = capsys.readouterr()
    slow = "numba cannot be used here: runs on the CPU take the slower plain loops, which round differently"
    assert shown.err.splitlines() == [f"msda-bench: warning: {slow}"]
    assert "note: trained without numba, by plain loops" in shown.out


def test_missing_data_are_reported_before_anything_is_trained(capsys, monkeypatch):
    Path("empty").mkdir()
    monkeypatch.setenv("MSDA_BENCH_DATA", "empty")
    monkeypatch.setenv("MSDA_BENCH_CACHE", "cache")
    text = SUITE.replace("sine:", "amazon:").replace("[target_0, target_1]", "[books]").replace("coral", "d_A")
    Path("tiny.yaml").write_text(text.replace("backbone: linear", "backbone: {mlp: {hidden: [4]}}"))
    assert run() == 2
    errors = capsys.readouterr().err.splitlines()
    assert all(line.startswith("msda-bench: error: ") and "msda-bench data fetch amazon" in line for line in errors)
    assert not Path("results").exists()


def test_an_edited_suite_trains_only_changed_cells(capsys):
    assert run() == 0
    Path("tiny.yaml").write_text(SUITE.replace("gamma: 1.0", "gamma: 2.0"))
    assert run() == 0
    shown = capsys.readouterr()
    assert "the suite has changed; 4 stored runs are no longer in it" in shown.err
    assert "4 stored before, 4 trained" in shown.out
    keys = {cell.key for cell in Store(RESULTS).read_plan().cells}
    assert len(keys) == CELLS
    assert len(results()) == CELLS + 4
    assert keys < results().keys()


def test_a_damaged_record_and_plan_are_reported_and_replaced(capsys):
    assert run() == 0
    before = results()
    key = min(before)
    path = relog(RESULTS, {key: b"{}\n"})
    (RESULTS / "plan.json").write_text("{")
    capsys.readouterr()
    assert run("--quiet") == 0
    error = capsys.readouterr().err
    assert f"{path.name}: a record is truncated or not a record" in error
    assert "plan.json: is damaged" in error
    assert results() == before
    assert main(["store", "verify", "results/tiny"]) == 0


def test_a_cell_that_fails_is_named_and_does_not_stop_the_others(talking, capsys):
    Path("broken").touch()
    assert run("--keep-going") == 1
    shown = capsys.readouterr()
    assert "4 trained, 4 failed; " in shown.out
    reported = [line for line in shown.err.splitlines() if f"failed: {BUG}" in line]
    assert len(reported) == 4
    assert all("Traceback" in Path(line.partition("; traceback in ")[2]).read_text() for line in reported)
    assert run("--keep-going", "--quiet") == 1
    shown = capsys.readouterr()
    lines = shown.out.replace("\n  ", " ").splitlines()
    assert shown.err == ""
    assert f"problem: tiny: DARN: 4 of 4 runs failed, first at target target_0, seed 0: {BUG}" in lines
    (kept,) = [line for line in lines if "traceback" in line]
    assert kept.startswith("the first of 4 tracebacks is in results/tiny/log/")
    assert Path(kept.partition(" is in ")[2].partition(",")[0]).is_file()
    assert not [line for line in lines if "gain over" in line or "runs selected" in line]
    Path("broken").unlink()
    assert run() == 0
    assert "4 stored before, 4 trained" in capsys.readouterr().out


def test_a_rerun_finishes_a_stopped_or_killed_run():
    Path("tiny.yaml").write_text(SUITE.replace("epochs: 2", "epochs: 40"))
    stored = 0
    for number in (signal.SIGINT, signal.SIGKILL):
        command = [*ENTRY, "run", "tiny.yaml", "--device", "cpu", "--workers", "1"]
        runner = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while runner.poll() is None and n_lines(RESULTS) <= stored:
            time.sleep(0.02)
        runner.send_signal(number)
        _, errors = runner.communicate(timeout=60)
        stored = n_lines(RESULTS)
        assert runner.returncode == (130 if number == signal.SIGINT else -number)
        assert (b"interrupted; run the same command again to resume" in errors) == (number == signal.SIGINT)
        assert b"Traceback" not in errors
    assert run() == 0
    assert run("--out", "undisturbed") == 0
    assert main(["store", "verify", "results/tiny"]) == 0
    assert table("results") == table("undisturbed")


def table(parent):
    return Path(parent, "tiny", "leaderboard.csv").read_bytes()


def one_target(*options):
    return run("--quiet", "--only", "method=SRC,target=target_0", *options)


EVERY = [pytest.param(code, 1, marks=pytest.mark.nightly) for code in (errno.ENOSPC, errno.EIO, errno.EROFS)]


@pytest.mark.parametrize(("code", "step"), [(errno.ENOSPC, 5), *EVERY])
def test_any_refused_call_is_reported_in_one_line_and_a_rerun_finishes(code, step, capsys):
    assert one_target("--out", "whole") == 0
    for at in itertools.count(0, step):
        out = f"out-{at}"
        capsys.readouterr()
        with faults(code, at) as faulty:
            ended = one_target("--out", out)
        if faulty.refused is None:
            break
        error = capsys.readouterr().err
        assert "Traceback" not in error
        reported = [line for line in error.splitlines() if os.strerror(code) in line]
        assert (ended, len(reported)) == (2, 1)
        assert reported[0].startswith(f"msda-bench: error: {out}")
        assert one_target("--out", out) == 0
        assert table(out) == table("whole")
        assert main(["store", "verify", f"{out}/tiny"]) == 0
    assert (ended, at > 20) == (0, True)


def test_a_stored_conflict_is_shown_with_exit_code_1(capsys):
    assert one_target() == 0
    _, record = min(records_of(RESULTS).items())
    Store(RESULTS).publish(replace(record, outcome=Outcome(20, sum_squared_error=1.0)))
    capsys.readouterr()
    assert one_target() == 1
    assert "another result of the same run is stored with the one that counts" in capsys.readouterr().out
