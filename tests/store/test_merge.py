from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from msda_bench.store import Outcome, Store
from msda_bench.store.sweep import merge
from msda_bench.suite.plan import Plan
from tests.store.conftest import make_record, newer_record


def test_merge_copies_new_records_and_names_conflicts(tmp_path: Path) -> None:
    into, source = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    shared, new, damaged = make_record(), make_record(seed=1), make_record(seed=2)
    into.publish(shared)
    source.publish(replace(shared, outcome=Outcome(100, 1)))
    source.publish(new)
    source.publish(damaged)
    source.path(damaged.key).write_bytes(b"x")
    source.write_plan(Plan("p", (), ()))
    before = sorted(source.folder.rglob("*"))
    found = merge(into, source)
    assert (found.copied, found.present, len(found.conflicts), len(found.bad)) == (1, 1, 1, 1)
    assert shared.key in found.conflicts[0]
    assert damaged.key in found.bad[0]
    assert into.read(shared.key) == shared
    assert into.read(new.key) == new
    assert into.read_plan() == Plan("p", (), ())
    assert sorted(source.folder.rglob("*")) == before


def test_failures_and_conflicting_results_are_copied_once(tmp_path: Path) -> None:
    into, source = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    record, other = make_record(), make_record(outcome=Outcome(100, 1))
    failed = make_record(seed=1, status="failed", outcome=None, message="no memory")
    for each in (record, other, failed, replace(failed, message="no disk")):
        source.publish(each)
    found = merge(into, source)
    assert (found.copied, found.present, found.failures, found.bad) == (1, 0, 2, [])
    assert found.conflicts == [f"{into.path(record.key)}: another result for the same cell is kept beside it"]
    assert into.read(record.key) == record
    assert [each.message for each in into.failures(failed.key)] == ["no memory", "no disk"]
    files = sorted(path.name for path in into.folder.rglob("*.json"))
    assert files == sorted(path.name for path in source.folder.rglob("*.json"))
    again = merge(into, source)
    assert (again.copied, again.present, again.failures, again.bad) == (0, 1, 0, [])
    assert again.conflicts == found.conflicts
    assert sorted(path.name for path in into.folder.rglob("*.json")) == files


def test_a_damaged_record_at_the_destination_is_named_and_replaced(tmp_path: Path) -> None:
    into, source = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    for store in (into, source):
        store.publish(make_record())
    into.path(make_record().key).write_bytes(b"x")
    found = merge(into, source)
    assert found.copied == 1
    assert [line.partition(": ")[2] for line in found.bad] == [
        f"is truncated or not a record; now {make_record().key}.bad-1"
    ]
    assert into.read(make_record().key) == make_record()


def test_another_plan_is_named_and_does_not_replace_the_first(tmp_path: Path) -> None:
    into, source = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    into.write_plan(Plan("one", (), ()))
    source.write_plan(Plan("two", (), ()))
    (note,) = merge(into, source).notes
    kept = f"{into.folder / 'plan.json'} stays, and cells that it does not name stay unused"
    assert note == f"{source.folder / 'plan.json'}: is another plan; {kept}"
    assert into.read_plan() == Plan("one", (), ())
    source.write_plan(Plan("one", (), ()))
    assert merge(into, source).notes == []


def test_a_record_of_a_newer_schema_is_named_and_the_rest_is_copied(tmp_path: Path) -> None:
    into, source = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    source.publish(make_record())
    newer = source.path("0" * 64)
    newer.parent.mkdir()
    newer.write_bytes(newer_record())
    found = merge(into, source)
    assert found.bad == [f"{newer}: has schema 2, but this msda-bench reads 1; install a newer one"]
    assert found.copied == 1
