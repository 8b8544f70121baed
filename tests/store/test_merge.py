from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from msda_bench.store import Outcome, Store
from msda_bench.store.merge import merge
from msda_bench.suite.plan import Plan
from tests.store.conftest import make_record


def test_it_copies_what_is_new_and_names_conflicts(tmp_path: Path) -> None:
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


def test_merging_again_changes_nothing(tmp_path: Path) -> None:
    into, source = Store.create(tmp_path / "a"), Store.create(tmp_path / "b")
    source.publish(make_record())
    assert merge(into, source).copied == 1
    again = merge(into, source)
    assert (again.copied, again.present, again.conflicts, again.bad) == (0, 1, [], [])
