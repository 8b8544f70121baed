"""Executors handle misbehaving cells in real processes."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

import fake_training
import pytest
from fake_training import FakeExpansion, fake_cell, fake_expansion

from msda_bench.errors import PluginError, StoreError
from msda_bench.running.execute import Executor, Interrupt
from msda_bench.running.jobs import CellFinished, Event, Job, JobStarted, Noted
from msda_bench.running.runner import Summary, run_suite, survey
from msda_bench.store import Store
from msda_bench.store.sweep import verify
from msda_bench.suite.cell import Cell

local = partial(fake_training.executor, "local")


def run(folder: Path, expansion: FakeExpansion, executor: Executor) -> Summary:
    store = Store.create(folder)
    return run_suite(survey(expansion, store), store, executor, keep_going=True)  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("do", "words"),
    [
        ("exit:0", "its process exited with code 0 (2 attempts)"),
        ("exit:3", "its process exited with code 3 (2 attempts)"),
        ("signal:SIGKILL", "its process was killed by SIGKILL, as the system does when memory runs out (2 attempts)"),
        ("segfault", "its process was killed by SIGSEGV (2 attempts)"),
        ("signal:SIGTERM", "its process was killed by SIGTERM (2 attempts)"),
    ],
)
def test_a_cell_whose_process_dies_is_tried_twice_and_costs_no_other(tmp_path: Path, do: str, words: str) -> None:
    expansion = fake_expansion(faults={("A", "t0", 1): do})
    poison = next(key for key, cell in expansion.cells.items() if cell.scheme.params["do"] == do)
    summary = run(tmp_path / "s", expansion, local())
    assert (summary.trained, summary.missing, summary.complete) == (7, 1, False)
    (failed,) = summary.failed
    assert (failed.key, failed.status, failed.message) == (poison, "failed", words)
    assert fake_training.trained().count(poison) == 2
    store = Store(tmp_path / "s")
    assert [record.message for record in store.failures(poison)] == [words]
    assert verify(store).bad == []
    assert any("runs again" in note for note in summary.notes)


def test_a_cell_whose_process_dies_once_succeeds(tmp_path: Path) -> None:
    expansion = fake_expansion(faults={("A", "t0", 0): f"once:{tmp_path / 'marker'}"})
    summary = run(tmp_path / "s", expansion, local())
    assert summary.complete
    assert len(fake_training.trained()) == 9


@pytest.mark.parametrize("do", ["hang", "freeze"])
def test_a_cell_that_hangs_is_ended_with_its_children(tmp_path: Path, do: str) -> None:
    expansion = fake_expansion(targets=("t0",), faults={("A", "t0", 0): do})
    summary = run(tmp_path / "s", expansion, local(timeout=0.7))
    (failed,) = summary.failed
    assert (failed.status, failed.message) == ("timeout", "its process took longer than 0.7 s")
    assert summary.trained == 3
    assert_gone(fake_training.pids())
    assert any(line.endswith("grandchild") for line in Path(os.environ[fake_training.LOG]).read_text().splitlines())


@pytest.mark.parametrize("executor", ["local", "inline"])
def test_whatever_a_component_raises_is_a_failure_of_its_cell_alone(
    tmp_path: Path, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ("BaseException", "GeneratorExit", "KeyboardInterrupt", "_UnspeakableError")
    expansion = fake_expansion(faults={("A", "t0", seed): f"throw:{kind}" for seed, kind in enumerate(kinds)}, seeds=4)
    summary = run(tmp_path / "s", expansion, fake_training.executor(executor))
    unread = "its message cannot be read, since its __str__ raises"
    assert sorted((event.status, event.message) for event in summary.failed) == sorted(
        ("failed", f"{kind}: {unread if kind == '_UnspeakableError' else 'no message'}") for kind in kinds
    )
    assert (summary.trained, summary.interrupted) == (12, False)


def test_faults_that_python_sees_are_failures_too(tmp_path: Path) -> None:
    expansion = fake_expansion(seeds=1, faults={("A", "t0", 0): "raise", ("B", "t0", 0): "overeat"})
    summary = run(tmp_path / "s", expansion, local())
    assert sorted(event.status for event in summary.failed) == ["failed", "oom"]
    assert len(fake_training.trained()) == 4  # a fault that repeats is not tried twice
    healed = run(tmp_path / "s", expansion, local())
    assert (healed.stored, len(healed.failed)) == (2, 2)  # but again when the user asks again


@pytest.mark.parametrize("executor", ["local", "dask"])
def test_a_job_of_several_is_halved_until_the_poison_cell_is_alone(tmp_path: Path, executor: str) -> None:
    cells = [fake_cell(seed=seed, do="signal:SIGKILL" if seed == 2 else "ok") for seed in range(5)]
    store = Store.create(tmp_path / "s")
    events: list[Event] = list(fake_training.executor(executor).run([job_of(*cells)], store, Interrupt()))
    reported = {event.key: event.status for event in events if isinstance(event, CellFinished)}
    assert [reported[cell.key] for cell in cells] == ["ok", "ok", "failed", "ok", "ok"]
    assert any(isinstance(event, Noted) and "halves" in event.line for event in events)
    assert sum(isinstance(event, CellFinished) for event in events) == 5
    assert isinstance(events[0], JobStarted)


def test_a_job_of_several_that_takes_too_long_is_halved(tmp_path: Path) -> None:
    cells = [fake_cell(seed=seed, do="sleep:600" if seed == 1 else "ok") for seed in range(2)]
    store = Store.create(tmp_path / "s")
    events = list(local(timeout=0.5).run([job_of(*cells)], store, Interrupt()))
    reported = {event.key: event.status for event in events if isinstance(event, CellFinished)}
    assert reported == {cells[0].key: "ok", cells[1].key: "timeout"}


def test_a_fault_that_prevents_all_training_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="the device is unusable; use another"):
        run(tmp_path / "s", fake_expansion(), local(device="unusable"))
    with pytest.raises(RuntimeError, match="ZeroDivisionError: a bug"):
        run(tmp_path / "s", fake_expansion(), local(device="buggy"))
    with pytest.raises(Exception, match="3 worker processes in a row exited with code 7 before they began"):
        run(tmp_path / "s", fake_expansion(), local(device="dies"))
    assert_gone(fake_training.pids())


def test_a_store_that_cannot_be_written_stops_the_run_with_one_line(tmp_path: Path) -> None:
    expansion = fake_expansion()
    store = Store.create(tmp_path / "s")
    for key in expansion.cells:
        (store.folder / "cells" / key[:2]).touch()  # a file where a folder must be
    with pytest.raises(StoreError, match="cannot be") as caught:
        list(local().run([job_of(cell) for cell in expansion.cells.values()], store, Interrupt()))
    assert "\n" not in str(caught.value)
    assert_gone(fake_training.pids())
