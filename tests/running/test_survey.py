from __future__ import annotations

import tracemalloc
from pathlib import Path

from fake_training import fake_expansion

from msda_bench.running.runner import survey
from msda_bench.store import Curves, Outcome, Record, Store


def test_survey_separates_stored_from_missing_cells_and_limits_missing_ones(tmp_path: Path) -> None:
    expansion = fake_expansion()
    store = Store.create(tmp_path / "s")
    keys = list(expansion.cells)
    for key in keys[:2]:
        store.publish(Record(key, expansion.cells[key].to_json(), "ok", Outcome(1, 1)))
    store.publish(Record(keys[3], expansion.cells[keys[3]].to_json(), "failed"))
    found = survey(expansion, store)  # type: ignore[arg-type]
    assert list(found.missing) == keys[2:]  # the failed one is tried again
    assert found.stored == 2
    limited = survey(expansion, store, None, 3)  # type: ignore[arg-type]
    assert list(limited.missing) == keys[2:5]
    assert limited.left == 3
    assert len(limited.selected) == 5
    part = survey(expansion, store, [cell for cell in expansion.plan.cells if cell.method == "B"])  # type: ignore[arg-type]
    assert {cell.method for cell in part.selected} == {"B"}
    assert len(part.ended) == 2  # of the whole plan, for the tables


def test_survey_keeps_little_of_each_record(tmp_path: Path) -> None:
    expansion = fake_expansion(seeds=5)
    store = Store.create(tmp_path / "s")
    curves = Curves([["s0"]], *([[[number / 7] for number in range(5000)]] * 3))
    for key, cell in expansion.cells.items():
        store.publish(Record(key, cell.to_json(), "ok", Outcome(1, 1), curves))
    tracemalloc.start()
    found = survey(expansion, store)  # type: ignore[arg-type]
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.ended) == len(expansion.cells) == 20
    assert kept < 200_000  # with curves 29 MB
    assert peak < 10_000_000


def test_without_a_store_all_cells_are_missing() -> None:
    expansion = fake_expansion()
    assert survey(expansion).missing == expansion.cells  # type: ignore[arg-type]
