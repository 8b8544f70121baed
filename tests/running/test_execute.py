"""Jobs of several cells in this process: a fault affects only its own cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import fake_training
from fake_training import fake_cell

from msda_bench.running.execute import JobRunner, Train
from msda_bench.running.jobs import CellFinished, Event, Job, JobStarted, Noted
from msda_bench.store import Outcome, Record, Store
from msda_bench.suite.cell import Cell


def run(store: Store, *cells: Cell, train: Train | None = None) -> list[Event]:
    """The events of a job but the first, which announces it."""
    first, *events = JobRunner(train or fake_training.make("cpu", None), store).run(
        Job(tuple(cell.key for cell in cells), cells)
    )
    assert first == JobStarted(tuple(cell.key for cell in cells))
    return events


def statuses(events: list[Event]) -> dict[str, str]:
    return {event.key: event.status for event in events if isinstance(event, CellFinished)}


def test_only_the_poison_cell_fails(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "s")
    cells = [fake_cell(seed=seed, do="raise" if seed == 3 else "ok") for seed in range(6)]
    reported = statuses(run(store, *cells))
    assert [reported[cell.key] for cell in cells] == ["ok", "ok", "ok", "failed", "ok", "ok"]
    assert store.keys() == {cell.key for cell in cells if cell.seed != 3}
    (failure,) = store.failures(cells[3].key)
    assert failure.message == "ValueError: two lines"
    assert "Traceback (most recent call last)" in failure.provenance["traceback"]


def test_every_fault_has_its_status(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "s")
    wanted = {"refuse": "failed", "no-memory": "oom", "leave": "failed", "nan": "failed", "diverge": "diverged"}
    for do, status in wanted.items():
        cell = fake_cell(do=do)
        (event,) = run(store, cell)
        assert isinstance(event, CellFinished)
        assert event.status == status
        assert event.message
        assert "\n" not in event.message
        assert (store.read(cell.key) is not None) == (status == "diverged")
    assert "NaN" not in "".join(path.read_text() for path in store.folder.rglob("*.json"))


def test_stored_cells_are_not_trained_again(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "s")
    cells = [fake_cell(seed=seed) for seed in range(2)]
    run(store, cells[0])
    events = run(store, *cells)
    assert [(event.key, event.trained) for event in events if isinstance(event, CellFinished)] == [
        (cells[0].key, False),
        (cells[1].key, True),
    ]
    assert sorted(fake_training.trained()) == sorted(cell.key for cell in cells)


def test_a_conflict_is_reported_and_the_first_result_counts(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "s")
    cell = fake_cell()
    first = Record(cell.key, cell.to_json(), "ok", Outcome(7, 7))

    def train(_: object) -> list[Record]:
        store.publish(first)  # another runner is faster
        return [Record(cell.key, cell.to_json(), "ok", Outcome(7, 0))]

    finished, noted = run(store, cell, train=train)
    assert finished == CellFinished.of(first)
    assert isinstance(noted, Noted)
    assert "another result for the same cell" in noted.line


def test_records_of_other_cells_count_as_a_failure(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "s")
    cell, other = fake_cell(), fake_cell(seed=1)
    (event,) = run(store, cell, train=lambda _: [Record(other.key, other.to_json(), "ok")])
    assert isinstance(event, CellFinished)
    assert event.message == "RuntimeError: the training core returned records of other cells"
    assert store.keys() == set()


def test_records_are_published_as_they_come_and_a_reason_is_reported_once(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "s")
    cells = tuple(fake_cell(seed=seed) for seed in range(3))
    where = {"stack": 1, "stack_note": "it looks at values"}

    def train(given: Sequence[Cell]) -> Iterator[Record]:
        for place, cell in enumerate(given):
            assert len(store.keys()) == place
            yield Record(cell.key, cell.to_json(), "ok", Outcome(4, 3), provenance=where)

    events = run(store, *cells, train=train)
    assert [event.line for event in events if isinstance(event, Noted)] == [
        "cells train alone, which is slower: it looks at values"
    ]
    assert store.keys() == {cell.key for cell in cells}


def test_a_fault_in_the_middle_costs_only_its_own_cell(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "s")
    cells = tuple(fake_cell(seed=seed) for seed in range(5))
    trained: list[int] = []

    def train(given: Sequence[Cell]) -> Iterator[Record]:
        for cell in given:
            if cell.seed == 2:
                raise ValueError("poison")
            trained.append(cell.seed)
            yield Record(cell.key, cell.to_json(), "ok", Outcome(4, 3))

    reported = statuses(run(store, *cells, train=train))
    assert [reported[cell.key] for cell in cells] == ["ok", "ok", "failed", "ok", "ok"]
    assert sorted(trained) == [0, 1, 3, 4]
