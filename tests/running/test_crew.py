"""A crew is kept between jobs, as dask workers keep theirs."""

from __future__ import annotations

from pathlib import Path

import fake_training
import pytest
from fake_training import SETUP, fake_cell

from msda_bench.errors import BenchError
from msda_bench.running.execute import Interrupt
from msda_bench.running.jobs import CellFinished, Event, Job
from msda_bench.running.local import Crew
from msda_bench.store import Store
from tests.running.test_executors import assert_gone


def crew_of(folder: Path, patience: float | None = None) -> Crew:
    store = Store.create(folder)
    return Crew(SETUP, [{}], store, patience=patience)


def train(crew: Crew, seed: int) -> list[Event]:
    """All events except the first, which announces the job."""
    cell = fake_cell(seed=seed)
    return list(crew.train([Job((cell.key,), (cell,))], Interrupt()))[1:]


@pytest.mark.parametrize(("patience", "processes"), [(None, 1), (0.1, 3)])
def test_a_worker_waits_for_the_next_job_and_costs_no_attempt_if_it_gives_up(
    tmp_path: Path, patience: float | None, processes: int
) -> None:
    crew = crew_of(tmp_path / "s", patience)
    for seed in range(3):
        (event,) = train(crew, seed)  # no event but the cell's
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
        train(crew_of(tmp_path / "s"), 0)
    assert len(caught.value.lines) == 1
