"""Changes that a component makes to the process do not reach the worker's next cell."""

from __future__ import annotations

from pathlib import Path

import vandal_training
from vandal_training import DEEDS, TRAINER, cell

from msda_bench.executors import CellFinished, Event, Interrupt, Noted, Setup, Store
from msda_bench.plugins.process_state import restored
from msda_bench.running.local import LocalExecutor
from msda_bench.store import Record
from msda_bench.suite.cell import Cell
from tests.running.conftest import job_of


def run(folder: Path, *cells: Cell) -> tuple[Store, list[Event]]:
    """The records of cells trained in sequence by one worker."""
    store, executor = Store.create(folder), LocalExecutor(setup=Setup("cpu", trainer=TRAINER))
    return store, list(executor.run(list(map(job_of, cells)), store, Interrupt()))


def result(record: Record) -> tuple[object, ...]:
    return record.status, record.outcome, record.curves, record.bound, record.validation


def test_changes_by_a_component_are_reported_and_do_not_affect_the_next_cells(tmp_path: Path) -> None:
    in_training = ("torch's number of threads", "torch's float32 matmul precision", "torch's default dtype")
    deeds = [*DEEDS, *in_training]
    vandals = [cell(seed, validator=deed) for seed, deed in enumerate(DEEDS)]
    vandals += [cell(seed, scheme=deed) for seed, deed in enumerate(in_training)]
    # With gradients disabled training fails.
    failing, honest = cell(3, scheme="torch's gradient mode"), cell(0)
    alone, events = run(tmp_path / "alone", honest)
    assert not [event for event in events if isinstance(event, Noted)]
    mixed, events = run(tmp_path / "mixed", *vandals, failing, honest)
    statuses = [event.status for event in events if isinstance(event, CellFinished)]
    assert statuses == ["ok"] * len(vandals) + ["failed", "ok"]
    records = [mixed.refresh().read(vandal.key) for vandal in vandals]
    assert [record.provenance["put_back"] for record in records] == [[deed] for deed in deeds]
    after, expected = mixed.read(honest.key), alone.refresh().read(honest.key)
    assert result(after) == result(expected)
    assert "put_back" not in after.provenance
    notes = [event.line for event in events if isinstance(event, Noted)]
    assert len(notes) == len(vandals)
    for deed in deeds:
        assert any(f"vandal) changed {deed}" in line or f"vandal, witness) changed {deed}" in line for line in notes)
    failure = mixed.read(failing.key)
    assert "a component changed torch's gradient mode; it was put back" in failure.provenance["traceback"]


def test_the_witness_detects_every_process_change() -> None:
    witness, seen = vandal_training.Witness(), set()
    for deed in DEEDS.values():
        with restored():
            deed()
            seen.add(witness.score(None))  # type: ignore[arg-type]
    seen.add(witness.score(None))  # type: ignore[arg-type]
    assert len(seen) == len(DEEDS) + 1
