"""Executors handle misbehaving cells in real processes."""

import errno
import os
from functools import partial
from pathlib import Path

import fake_training
import pytest
from fake_training import fake_cell, fake_expansion, pids, trained

from msda_bench.errors import PluginError
from msda_bench.executors import BenchError, CellFinished, Crew, Interrupt, JobStarted, Noted, Store, StoreError
from msda_bench.store.check import verify
from tests.running.conftest import assert_gone, job_of, run

local = partial(fake_training.executor, "local")


@pytest.mark.parametrize("executor", ["inline", "local"])
def test_all_cells_are_trained_once_and_a_rerun_starts_nothing(tmp_path, executor):
    expansion = fake_expansion()
    summary = run(tmp_path / "s", expansion, fake_training.executor(executor))
    assert summary.complete
    assert (summary.selected, summary.trained, summary.stored, summary.failed) == (8, 8, 0, ())
    assert sorted(trained()) == sorted(expansion.cells)
    assert (os.getpid() in pids()) == (executor == "inline")
    again = run(tmp_path / "s", expansion, local(device="dies"))
    assert (again.trained, again.stored, again.complete) == (0, 8, True)
    assert "8 of 8 runs selected: 8 stored before" in again.describe()


ENDS = {
    "exit:0": ("failed", "its process exited with code 0 (2 attempts)"),
    "hang": ("timeout", "its process took longer than 1.5 s"),
    "no-memory": ("oom", "MemoryError: no room for 1 TiB"),
    "signal:SIGKILL": (
        "failed",
        "its process was killed by SIGKILL, as the system does when memory runs out (2 attempts)",
    ),
    "segfault": ("failed", "its process was killed by SIGSEGV (2 attempts)"),
    "freeze": ("timeout", "its process took longer than 1.5 s"),
    "overeat": ("oom", "MemoryError: no message"),
    "interrupt": ("failed", "KeyboardInterrupt: no message"),
    "raise": ("failed", "ValueError: two lines"),
}
"""Status and message of the cells that do this."""


@pytest.mark.parametrize(("executor", "count"), [("local", len(ENDS)), ("dask", 3)])
def test_a_faulty_cell_costs_no_other_and_is_tried_again_if_its_process_was_lost(tmp_path, executor, count):
    ends = dict(list(ENDS.items())[:count])
    dos = [*ends, f"once:{tmp_path / 'marker'}", "die-after", "ok"]
    expansion = fake_expansion(("A",), ("t0",), len(dos), faults={("A", "t0", n): do for n, do in enumerate(dos)})
    summary = run(tmp_path / "s", expansion, fake_training.executor(executor, timeout=1.5), go_on=True)
    do_of = {key: str(cell.scheme.params["do"]) for key, cell in expansion.cells.items()}
    assert {do_of[event.key]: (event.status, event.message) for event in summary.failed} == ends
    assert (summary.trained + summary.elsewhere, summary.missing, summary.interrupted) == (3, count, False)
    twice = {do for do in dos if "2 attempts" in ends.get(do, ("", ""))[1] or do.startswith("once")}
    for key, do in do_of.items():
        assert trained().count(key) == (2 if do in twice else 1), do
    store = Store(tmp_path / "s")
    assert verify(store).bad == []
    failures = [stored for event in summary.failed for stored in store.failures[event.key]]
    assert [head.message for head in failures] == [event.message for event in summary.failed]
    assert sum("starts again" in note for note in summary.notes) == len(twice)
    log = Path(os.environ[fake_training.LOG]).read_text()
    assert sum(do in {"hang", "freeze"} for do in ends) == log.count("grandchild")
    assert_gone()
    assert sorted(path.name for path in store.folder.iterdir()) == ["log"]


def test_a_job_of_several_is_halved_until_the_poison_cell_is_alone(tmp_path):
    poison = {2: "signal:SIGKILL", 4: "sleep:600"}
    cells = [fake_cell(seed=seed, do=poison.get(seed, "ok")) for seed in range(5)]
    events = list(local(timeout=0.7).run([job_of(*cells)], Store.create(tmp_path / "s"), Interrupt()))
    ended = [event for event in events if isinstance(event, CellFinished)]
    reported = {event.key: event.status for event in ended}
    assert [reported[cell.key] for cell in cells] == ["ok", "ok", "failed", "ok", "timeout"]
    assert len(ended) == 5
    assert any(isinstance(event, Noted) and "halves" in event.line for event in events)
    assert isinstance(events[0], JobStarted)


@pytest.mark.parametrize(
    ("device", "error", "line"),
    [
        ("unusable", PluginError, "the device is unusable; use another"),
        ("buggy", RuntimeError, "ZeroDivisionError: a bug"),
        ("dies", BenchError, "3 worker processes in a row exited with code 7 before they began"),
    ],
)
def test_a_fault_that_prevents_all_training_stops_the_run(tmp_path, device, error, line):
    with pytest.raises(error, match=line):
        run(tmp_path / "s", fake_expansion(), local(device=device, workers=1))
    assert_gone()


def test_a_crews_idle_worker_that_gives_up_costs_no_attempt(tmp_path):
    crew = Crew(fake_training.SETUP, [{}], Store.create(tmp_path / "s"), patience=0.1)
    for seed in range(2):
        started, event = crew.train([job_of(fake_cell(seed=seed))], Interrupt())
        assert isinstance(started, JobStarted)
        assert isinstance(event, CellFinished)
        assert_gone()
    assert len(pids()) == 2
    crew.dismiss()


@pytest.mark.parametrize(
    ("at", "number", "remedy"),
    [
        ("loky.backend.fork_exec.fork_exec", errno.EAGAIN, "free memory or use fewer --workers"),
        ("loky.backend.synchronize.SemLock.__init__", errno.EROFS, "dev/shm .* --executor inline"),
        ("loky.backend.synchronize.SemLock.__init__", errno.ENOSPC, "dev/shm .* --executor inline"),
    ],
)
def test_a_system_that_cannot_start_processes_is_reported_in_one_line(tmp_path, monkeypatch, at, number, remedy):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(at, refuse)
    with pytest.raises(BenchError, match=f"cannot be started: {os.strerror(number)}; .*{remedy}") as caught:
        run(tmp_path / "s", fake_expansion(), local())
    assert len(caught.value.lines) == 1


def test_a_store_that_cannot_be_written_stops_the_run_with_one_line(tmp_path):
    cell, store = fake_cell(), Store.create(tmp_path / "s")
    (store.folder / "log").rmdir()
    (store.folder / "log").touch()  # a file where a folder must be
    with pytest.raises(StoreError, match="cannot be") as caught:
        list(local().run([job_of(cell)], store, Interrupt()))
    assert len(caught.value.lines) == 1
    assert_gone()
