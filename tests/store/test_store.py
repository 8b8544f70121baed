from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msda_bench.errors import StoreError
from msda_bench.store import Outcome, Record, Store
from msda_bench.store.files import encode, load_arrays, pack, write_arrays
from msda_bench.store.store import DamagedPlanError
from msda_bench.store.sweep import merge, verify
from msda_bench.suite.plan import Plan
from tests.store.conftest import make_record, newer_record


def names(store: Store) -> list[str]:
    return sorted(path.name for path in store.folder.rglob("*") if path.is_file())


def test_the_first_writer_wins(store: Store) -> None:
    first = make_record(provenance={"runner": 1})
    assert store.publish(first)
    assert not store.publish(replace(first, provenance={"runner": 2}))
    assert store.read(first.key) == first
    assert store.keys() == {first.key}
    assert store.conflicts == []
    assert names(store) == [f"{first.key}.json"]


def test_another_result_for_the_same_cell_is_kept_once_and_named(store: Store) -> None:
    first = make_record()
    other = replace(first, outcome=Outcome(100, 81))
    store.publish(first)
    assert not store.publish(other)
    assert not store.publish(replace(other, timing={"train": 99.0}))
    assert store.read(first.key) == first
    assert names(store) == [f"{first.key}.conflict-1.json", f"{first.key}.json"]
    assert len(store.conflicts) == 2
    assert first.key in store.conflicts[0]
    assert len(verify(store).conflicts) == 1
    path = store.path(first.key).with_name(f"{first.key}.conflict-1.json")
    assert store.conflicting([first.key]) == [f"{path}: another result for the same cell"]
    assert store.conflicting([make_record(seed=1).key]) == []


def kept_with(value: float, **fields: Any) -> Record:
    data = pack({"label": np.array([value])})
    return make_record(saved={"predictions": hashlib.sha256(data).hexdigest()}, arrays={"predictions": data}, **fields)


def test_arrays_are_stored_beside_a_record_that_replaces_a_damaged_one(store: Store) -> None:
    record = kept_with(1.0)
    store.publish(make_record())
    store.path(record.key).write_bytes(b"torn")
    assert store.publish(record)
    assert verify(store).bad == []
    assert load_arrays(record, store.path(record.key), "predictions")["label"].tolist() == [1.0]


def test_a_result_in_conflict_names_no_arrays_and_is_merged_with_its_folder(store: Store, tmp_path: Path) -> None:
    store.publish(kept_with(1.0))
    store.publish(kept_with(2.0, outcome=Outcome(100, 81)))
    merged = merge(Store.create(tmp_path / "other"), store)
    assert (merged.bad, merged.copied, len(merged.conflicts)) == ([], 1, 1)


def test_arrays_that_are_no_npz_file_are_named(store: Store) -> None:
    store.publish(make_record())
    for data in (b"PK\x03\x04 no zip", b"text"):
        record = make_record(saved={"features": hashlib.sha256(data).hexdigest()}, arrays={"features": data})
        write_arrays(record, store.path(record.key))
        with pytest.raises(StoreError, match="not an npz file"):
            load_arrays(record, store.path(record.key), "features")


def test_failures_are_kept_and_never_block_a_success(store: Store) -> None:
    good = make_record()
    for status in ("failed", "oom"):
        assert store.publish(replace(good, status=status, outcome=None, message=status))
    assert store.read(good.key) is None
    assert [record.status for record in store.failures(good.key)] == ["failed", "oom"]
    assert store.last_failure(good.key).status == "oom"
    assert store.results([good.key]) == {}
    assert store.publish(good)
    assert store.results([good.key]) == {good.key: good}
    assert len(store.failures(good.key)) == 2


def test_more_than_nine_failures_keep_their_order(store: Store) -> None:
    for number in range(12):
        store.publish(make_record(status="failed", outcome=None, message=str(number)))
    assert [record.message for record in store.failures(make_record().key)] == [str(number) for number in range(12)]


def test_a_damaged_record_is_quarantined_and_named_and_its_cell_runs_again(store: Store) -> None:
    record = make_record()
    for number in (1, 2):
        store.publish(record)
        path = store.path(record.key)
        path.write_bytes(path.read_bytes()[:-9])
        assert store.read(record.key) is None
        assert names(store)[:number] == [f"{record.key}.bad-{n}" for n in range(1, number + 1)]
    assert len(store.damaged) == 2
    assert f"now {record.key}.bad-2" in store.damaged[1]
    assert store.publish(record)
    assert store.read(record.key) == record
    assert verify(store).quarantined == 2


def test_without_repair_a_damaged_record_is_named_and_left(store: Store) -> None:
    record = make_record()
    store.publish(record)
    store.path(record.key).write_bytes(b"x")
    reader = Store(store.folder, repair=False)
    assert reader.read(record.key) is None
    assert len(reader.damaged) == 1
    assert names(store) == [f"{record.key}.json"]


@pytest.mark.parametrize("newer", [False, True])
def test_a_record_repaired_by_another_process_is_not_quarantined(
    store: Store, monkeypatch: pytest.MonkeyPatch, newer: bool
) -> None:
    record = make_record()
    store.publish(record)
    path, mended = store.path(record.key), newer_record(schema=99) if newer else encode(record)
    path.write_bytes(b"x")
    rename = Path.rename

    def mended_first(self: Path, target: Path) -> Path:
        if self == path:
            path.write_bytes(mended)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", mended_first)
    if newer:
        with pytest.raises(StoreError, match="has schema 99, but this msda-bench reads 1; install a newer one"):
            store.read(record.key)
    else:
        assert store.read(record.key) is None
        assert store.read(record.key) == record
    assert store.damaged == []
    assert path.read_bytes() == mended
    assert names(store) == [path.name]


def test_records_are_returned_once_in_the_requested_order(store: Store) -> None:
    records = [make_record(cell={"n": n}, key=f"{n:064x}") for n in range(3)]
    for record in records:
        store.publish(record)
    keys = [records[2].key, records[0].key, "f" * 64, records[2].key]
    assert list(store.results(keys)) == [records[2].key, records[0].key]


@pytest.mark.parametrize("key", ["", "../../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n"])
def test_an_invalid_key_is_refused(store: Store, key: str) -> None:
    with pytest.raises(StoreError, match="not a cell's key"):
        store.read(key)
    with pytest.raises(StoreError, match="not a cell's key"):
        store.publish(make_record(key=key))


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """A real limit of the system: no file may exceed 100 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:  # before pytest writes to its own output
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_refused_write_is_reported_in_one_line_without_damage(store: Store) -> None:
    stored = make_record()
    store.publish(stored)
    new = make_record(seed=1)
    reported = "cannot be written, what was stored before is intact: File too large"
    with pytest.raises(StoreError, match=reported) as caught, full_disk():
        store.publish(new)
    assert str(caught.value).startswith(str(store.path(new.key)))
    assert len(caught.value.lines) == 1
    assert "\n" not in str(caught.value)
    assert names(store) == [f"{stored.key}.json"]
    assert store.read(stored.key) == stored


def test_a_record_that_cannot_be_read_is_named_not_lost(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    record = make_record()
    store.publish(record)

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", fail)
        with pytest.raises(StoreError, match="cannot be read: Input/output error"):
            store.read(record.key)
    assert store.read(record.key) == record


@pytest.mark.parametrize("links", [True, False])
def test_four_writers_publish_each_record_once(tmp_path: Path, links: bool) -> None:
    code = """
import errno, os, sys
from dataclasses import replace
from pathlib import Path
from msda_bench.store import Outcome, Record, Store
def no_links(*_):
    raise OSError(errno.EPERM, "no links here")
if sys.argv[3] == "False":
    os.link = no_links
store = Store.create(Path(sys.argv[1]))
records = [Record(f"{n:064x}", {}, "ok", Outcome(1, 1), provenance={"by": sys.argv[2]}) for n in range(40)]
print(sum(map(store.publish, records)))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "suite")]
    runs = [subprocess.Popen([*command, str(n), str(links)], stdout=subprocess.PIPE) for n in range(4)]
    published = [int(run.communicate()[0]) for run in runs]
    assert sum(published) == 40
    store = Store(tmp_path / "suite")
    assert len(store.results(f"{n:064x}" for n in range(40))) == 40
    assert store.damaged == []


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK])
def test_without_hard_links_the_first_writer_still_wins(
    store: Store, without_links: Callable[[int], None], code: int
) -> None:
    without_links(code)
    first = make_record()
    assert store.publish(first)
    assert not store.publish(replace(first, outcome=Outcome(100, 0)))
    assert store.read(first.key) == first
    store.path(first.key).write_bytes(b"x")
    assert store.read(first.key) is None
    assert names(store) == [".lock", f"{first.key}.bad-1", f"{first.key}.conflict-1.json"]
    assert verify(store).bad == []


def test_a_plan_round_trips_and_is_replaced_atomically(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not store.has_plan()
    with pytest.raises(StoreError, match=r"plan\.json: is missing"):
        store.read_plan()
    plan = Plan("suite", (), ())
    store.write_plan(plan)
    assert store.read_plan() == plan

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match=r"plan\.json: cannot be written.*No space left"):
        store.write_plan(Plan("other", (), ()))
    assert store.read_plan() == plan


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}', '{"schema": "1"}', "[" * 100_000])
def test_a_damaged_plan_is_reported_in_one_line(store: Store, text: str) -> None:
    (store.folder / "plan.json").write_text(text)
    with pytest.raises(DamagedPlanError, match=r"plan\.json: is damaged") as caught:
        store.read_plan()
    assert "\n" not in str(caught.value)


def test_a_newer_plan_is_refused_and_not_called_damaged(store: Store) -> None:
    (store.folder / "plan.json").write_text('{"schema": 99}')
    with pytest.raises(StoreError, match="layout 99") as caught:
        store.read_plan()
    assert not isinstance(caught.value, DamagedPlanError)


def test_a_folder_that_is_no_result_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="missing; name a result folder"):
        Store(tmp_path / "absent")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="not a folder"):
        Store(tmp_path / "file")
    with pytest.raises(StoreError, match="is not a result folder; it holds no plan"):
        Store(tmp_path)
    with pytest.raises(StoreError, match="is not a result folder"):
        Store.create(tmp_path)  # it holds a file that is not ours
    Store.create(tmp_path / "results" / "one").write_plan(Plan("one", (), ()))
    with pytest.raises(StoreError, match="name one of those in it: one"):
        Store(tmp_path / "results")


def test_create_takes_an_absent_or_empty_folder_or_a_store(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "absent/deep"):
        assert Store.find(tmp_path / name) is None
        Store.create(tmp_path / name).publish(make_record())
        assert Store.create(tmp_path / name).keys() == {make_record().key}
        assert Store.find(tmp_path / name) is not None


def test_what_cannot_be_quarantined_stays_where_it_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    record = make_record()
    store.publish(record)
    path = store.path(record.key)
    path.write_bytes(b"damaged")
    link, calls = os.link, 0

    def fail_first(*args: Any, **options: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        link(*args, **options)

    monkeypatch.setattr(os, "link", fail_first)
    assert store.read(record.key) is None
    line = f"{path}: is truncated or not a record; it cannot be moved: No space left on device"
    assert store.damaged == [line]
    assert path.read_bytes() == b"damaged"
    assert names(store) == [path.name]
