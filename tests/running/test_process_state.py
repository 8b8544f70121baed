"""Changes that a component makes to the process do not reach the worker's next cell."""

from __future__ import annotations

import warnings
from pathlib import Path

import vandal_training
from vandal_training import DEEDS, TRAINER, cell

from msda_bench.plugins.process_state import restored
from msda_bench.running.execute import Interrupt, Setup
from msda_bench.running.jobs import CellFinished, Event, Job, Noted
from msda_bench.running.local import LocalExecutor
from msda_bench.store import Record, Store
from msda_bench.suite.cell import Cell


def run(folder: Path, cells: list[Cell]) -> tuple[dict[str, Record], list[Event]]:
    """The records of cells trained in sequence by one worker."""
    store = Store.create(folder)
    jobs = [Job((one.key,), (one,)) for one in cells]
    events = list(LocalExecutor(setup=Setup("cpu", trainer=TRAINER)).run(jobs, store, Interrupt()))
    return store.results([one.key for one in cells]), events


def result(record: Record) -> tuple[object, ...]:
    return record.status, record.outcome, record.curves, record.bound, record.validation


def test_process_changes_by_a_component_are_reported_and_do_not_affect_the_next_cell(tmp_path: Path) -> None:
    schemes = ("torch's number of threads", "torch's float32 matmul precision", "torch's default dtype")
    vandals = [
        *(cell(seed, validator=deed) for seed, deed in enumerate(DEEDS)),
        *(cell(seed, scheme=deed) for seed, deed in enumerate(schemes)),
    ]
    deeds = [*DEEDS, *schemes]
    honest = [cell(seed) for seed in range(len(vandals))]
    alone, events = run(tmp_path / "alone", honest)
    assert not [event for event in events if isinstance(event, Noted)]
    mixed = [one for pair in zip(vandals, honest, strict=True) for one in pair]
    found, events = run(tmp_path / "mixed", mixed)
    assert [event.status for event in events if isinstance(event, CellFinished)] == ["ok"] * len(mixed)
    for vandal, after, deed in zip(vandals, honest, deeds, strict=True):
        assert result(found[after.key]) == result(alone[after.key]), deed
        assert found[vandal.key].provenance["put_back"] == [deed]
        assert "put_back" not in found[after.key].provenance
    notes = [event.line for event in events if isinstance(event, Noted)]
    assert len(notes) == len(vandals)
    for deed in deeds:
        assert any(f"vandal) changed {deed}" in line or f"vandal, witness) changed {deed}" in line for line in notes)


def test_an_error_after_a_process_change_mentions_the_change(tmp_path: Path) -> None:
    """With gradients disabled training fails; the record holds the reason, and the next cell trains."""
    vandal, after = cell(0, scheme="torch's gradient mode"), cell(0)
    store = Store.create(tmp_path / "s")
    jobs = [Job((one.key,), (one,)) for one in (vandal, after)]
    list(LocalExecutor(setup=Setup("cpu", trainer=TRAINER)).run(jobs, store, Interrupt()))
    (failure,) = store.failures(vandal.key)
    assert "a component changed torch's gradient mode; it was put back" in failure.provenance["traceback"]
    assert store.keys() == {after.key}


def test_the_witness_detects_every_process_change() -> None:
    witness, seen = vandal_training.Witness(), set()
    for deed in DEEDS.values():
        with restored():
            deed()
            seen.add(witness.score(None))  # type: ignore[arg-type]
    seen.add(witness.score(None))  # type: ignore[arg-type]
    assert len(seen) == len(DEEDS) + 1


def test_state_that_a_library_sets_on_import_is_not_blamed_on_a_component() -> None:
    with restored() as changed:
        warnings.filterwarnings("ignore", message="the matrix subclass is not the recommended way")
        warnings.filterwarnings("always", category=DeprecationWarning, module=r"^sklearn\.")
    assert changed == []


def test_a_warning_filter_with_several_categories_is_accepted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=(UserWarning, FutureWarning))  # type: ignore[arg-type]
        with restored() as changed:
            pass
    assert changed == []
