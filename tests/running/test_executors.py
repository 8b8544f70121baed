"""Executors handle misbehaving cells in real processes."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

import fake_training
import pytest
from fake_training import FakeExpansion, fake_cell, fake_expansion

from msda_bench.errors import PluginError
from msda_bench.executors import (
    BenchError,
    CellFinished,
    Crew,
    Event,
    Executor,
    Interrupt,
    Job,
    JobStarted,
    Noted,
    Store,
    StoreError,
)
from msda_bench.running.runner import Summary, run_suite, survey
from msda_bench.store.sweep import verify
from msda_bench.suite.cell import Cell

local = partial(fake_training.executor, "local")


def run(folder: Path, expansion: FakeExpansion, executor: Executor, *, keep_going: bool = False) -> Summary:
    store = Store.create(folder)
    return run_suite(survey(expansion, store), store, executor, keep_going=keep_going)  # type: ignore[arg-type]


def gone(pid: int) -> bool:
    """Whether a process has ended; a zombie counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def assert_gone(pids: set[int]) -> None:
    deadline = time.monotonic() + 10
    while not all(map(gone, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in pids if not gone(pid)] == []


def job_of(*cells: Cell) -> Job:
    return Job(tuple(cell.key for cell in cells), cells)


@pytest.mark.parametrize("executor", ["inline", "local"])
def test_all_cells_are_trained_once_and_a_rerun_starts_nothing(tmp_path: Path, executor: str) -> None:
    expansion = fake_expansion()
    summary = run(tmp_path / "s", expansion, fake_training.executor(executor))
    assert summary.complete
    assert (summary.selected, summary.trained, summary.stored, summary.failed) == (8, 8, 0, ())
    assert sorted(fake_training.trained()) == sorted(expansion.cells)
    again = run(tmp_path / "s", expansion, local(device="dies"))
    assert (again.trained, again.stored, again.complete) == (0, 8, True)
    assert "8 of 8 cells selected: 8 stored before" in again.describe()


DEATHS = {
    "exit:0": "its process exited with code 0 (2 attempts)",
    "exit:3": "its process exited with code 3 (2 attempts)",
    "signal:SIGKILL": "its process was killed by SIGKILL, as the system does when memory runs out (2 attempts)",
    "segfault": "its process was killed by SIGSEGV (2 attempts)",
}


def test_cells_whose_processes_die_are_tried_twice_and_cost_no_other(tmp_path: Path) -> None:
    faults = {("A", "t0", seed): do for seed, do in enumerate(DEATHS)}
    faults[("B", "t0", 0)] = f"once:{tmp_path / 'marker'}"
    expansion = fake_expansion(targets=("t0",), seeds=5, faults=faults)
    summary = run(tmp_path / "s", expansion, local())
    assert (summary.trained, summary.missing, summary.complete) == (6, 4, False)
    died = {expansion.cells[event.key].scheme.params["do"]: event for event in summary.failed}
    assert {do: event.message for do, event in died.items()} == DEATHS
    store = Store(tmp_path / "s")
    for event in died.values():
        assert (event.status, event.raised) == ("failed", False)
        assert fake_training.trained().count(event.key) == 2
        assert [record.message for record in store.failures(event.key)] == [event.message]
    assert verify(store).bad == []
    assert sum("runs again" in note for note in summary.notes) == 5
    assert_gone(fake_training.pids())


def test_cells_that_hang_are_ended_with_their_children(tmp_path: Path) -> None:
    expansion = fake_expansion(targets=("t0",), faults={("A", "t0", 0): "hang", ("B", "t0", 0): "freeze"})
    summary = run(tmp_path / "s", expansion, local(timeout=0.7))
    late = ("timeout", "its process took longer than 0.7 s")
    assert [(event.status, event.message) for event in summary.failed] == [late] * 2
    assert summary.trained == 2
    assert_gone(fake_training.pids())
    log = Path(os.environ[fake_training.LOG]).read_text().splitlines()
    assert sum(line.endswith("grandchild") for line in log) == 2


def test_whatever_a_component_raises_is_a_failure_of_its_cell_alone(tmp_path: Path) -> None:
    kinds = ("BaseException", "GeneratorExit", "KeyboardInterrupt", "_UnspeakableError")
    expansion = fake_expansion(faults={("A", "t0", seed): f"throw:{kind}" for seed, kind in enumerate(kinds)}, seeds=4)
    summary = run(tmp_path / "s", expansion, local(), keep_going=True)
    unread = "its message cannot be read, since its __str__ raises"
    assert sorted((event.status, event.message) for event in summary.failed) == sorted(
        ("failed", f"{kind}: {unread if kind == '_UnspeakableError' else 'no message'}") for kind in kinds
    )
    assert (summary.trained, summary.interrupted) == (12, False)


def test_faults_that_python_sees_are_failures_too(tmp_path: Path) -> None:
    expansion = fake_expansion(seeds=1, faults={("A", "t0", 0): "raise", ("B", "t0", 0): "overeat"})
    summary = run(tmp_path / "s", expansion, local(), keep_going=True)
    assert sorted(event.status for event in summary.failed) == ["failed", "oom"]
    assert len(fake_training.trained()) == 4  # a fault that repeats is not tried twice
    healed = run(tmp_path / "s", expansion, local(), keep_going=True)
    assert (healed.stored, len(healed.failed)) == (2, 2)  # but again when the user asks again


@pytest.mark.parametrize("executor", ["local", "dask"])
def test_a_job_of_several_is_halved_until_the_poison_cell_is_alone(tmp_path: Path, executor: str) -> None:
    poison = {2: "signal:SIGKILL", 4: "sleep:600"} if executor == "local" else {2: "signal:SIGKILL"}
    cells = [fake_cell(seed=seed, do=poison.get(seed, "ok")) for seed in range(5)]
    store = Store.create(tmp_path / "s")
    events: list[Event] = list(fake_training.executor(executor, timeout=0.7).run([job_of(*cells)], store, Interrupt()))
    reported = {event.key: event.status for event in events if isinstance(event, CellFinished)}
    assert [reported[cell.key] for cell in cells] == [
        "ok",
        "ok",
        "failed",
        "ok",
        "timeout" if executor == "local" else "ok",
    ]
    assert any(isinstance(event, Noted) and "halves" in event.line for event in events)
    assert sum(isinstance(event, CellFinished) for event in events) == 5
    assert isinstance(events[0], JobStarted)


def test_a_fault_that_prevents_all_training_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="the device is unusable; use another"):
        run(tmp_path / "s", fake_expansion(), local(device="unusable"))
    with pytest.raises(RuntimeError, match="ZeroDivisionError: a bug"):
        run(tmp_path / "s", fake_expansion(), local(device="buggy"))
    with pytest.raises(BenchError, match="3 worker processes in a row exited with code 7 before they began"):
        run(tmp_path / "s", fake_expansion(), local(device="dies"))
    assert_gone(fake_training.pids())


@pytest.mark.parametrize(("patience", "processes"), [(None, 1), (0.1, 2)])
def test_a_crews_worker_waits_for_the_next_job_and_costs_no_attempt_if_it_gives_up(
    tmp_path: Path, patience: float | None, processes: int
) -> None:
    crew = Crew(fake_training.SETUP, [{}], Store.create(tmp_path / "s"), patience=patience)
    for seed in range(2):
        started, event = crew.train([job_of(fake_cell(seed=seed))], Interrupt())
        assert isinstance(started, JobStarted)
        assert isinstance(event, CellFinished)
        if patience is not None:
            assert_gone(fake_training.pids())
    assert len(fake_training.pids()) == processes
    crew.dismiss()
    assert_gone(fake_training.pids())


def test_a_system_that_cannot_start_processes_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("loky.backend.fork_exec.fork_exec", refuse)
    with pytest.raises(BenchError, match="cannot be started: Resource temporarily unavailable; free memory") as caught:
        run(tmp_path / "s", fake_expansion(), local())
    assert len(caught.value.lines) == 1


def test_a_store_that_cannot_be_written_stops_the_run_with_one_line(tmp_path: Path) -> None:
    expansion = fake_expansion()
    store = Store.create(tmp_path / "s")
    for key in expansion.cells:
        (store.folder / "cells" / key[:2]).touch()  # a file where a folder must be
    with pytest.raises(StoreError, match="cannot be") as caught:
        list(local().run([job_of(cell) for cell in expansion.cells.values()], store, Interrupt()))
    assert "\n" not in str(caught.value)
    assert_gone(fake_training.pids())
