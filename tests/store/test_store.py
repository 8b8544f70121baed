from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msda_bench.errors import StoreError
from msda_bench.store import Outcome, Record, Store
from msda_bench.store.files import encode, load_arrays, pack, write_arrays
from msda_bench.store.store import DamagedPlanError
from msda_bench.store.sweep import merge, verify
from msda_bench.suite.cell import canonical_json
from msda_bench.suite.plan import Plan, plan_to_json
from tests.store.conftest import forked, make_record, newer_record

GOLDEN = Path(__file__).parent / "golden" / "schema-1"


def names(store: Store) -> list[str]:
    return sorted(path.name for path in store.folder.rglob("*") if path.is_file())


def damages(data: bytes, step: int) -> list[bytes]:
    """The data with a bit flipped, or cut, at some of its bytes."""
    flipped = [data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :] for place in range(0, len(data), step)]
    return [*flipped, *(data[:place] for place in range(0, len(data), step))]


def test_another_result_for_the_same_cell_is_kept_once_and_named(store: Store) -> None:
    first = make_record()
    other = replace(first, outcome=Outcome(100, 81))
    assert store.publish(first)
    assert not store.publish(replace(first, provenance={"runner": 2}))
    assert (store.conflicts, names(store), store.keys()) == ([], [f"{first.key}.json"], {first.key})
    assert not store.publish(other)
    assert not store.publish(replace(other, timing={"train": 99.0}))
    assert store.read(first.key) == first
    assert names(store) == [f"{first.key}.conflict-1.json", f"{first.key}.json"]
    path = store.path(first.key)
    assert store.drain_warnings() == [f"{path}: another result for the same cell is kept beside it"] * 2
    line = f"{path.with_suffix('.conflict-1.json')}: another result for the same cell"
    assert (verify(store).conflicts, store.conflicting([first.key])) == ([line], [line])
    assert store.conflicting([make_record(seed=1).key]) == []


def kept_with(value: float, **fields: Any) -> Record:
    data = pack({"label": np.array([value])})
    return make_record(saved={"predictions": hashlib.sha256(data).hexdigest()}, arrays={"predictions": data}, **fields)


def test_arrays_are_stored_beside_the_result_that_counts_and_merged(store: Store, tmp_path: Path) -> None:
    record = kept_with(1.0)
    store.publish(make_record())
    store.path(record.key).write_bytes(b"torn")
    assert store.publish(record)
    assert store.kept("predictions") == {record.key}
    assert store.kept("weights") == set()
    store.publish(kept_with(2.0, outcome=Outcome(100, 81)))
    into = Store.create(tmp_path / "other")
    merged = merge(into, store)
    assert (merged.bad, merged.copied, len(merged.conflicts)) == ([], 1, 1)
    assert load_arrays(record, into.path(record.key), "predictions")["label"].tolist() == [1.0]
    assert verify(into).bad == []
    for data in (b"PK\x03\x04 no zip", b"text"):
        odd = make_record(saved={"weights": hashlib.sha256(data).hexdigest()}, arrays={"weights": data})
        write_arrays(odd, store.path(odd.key))
        with pytest.raises(StoreError, match="not an npz file"):
            load_arrays(odd, store.path(odd.key), "weights")


def test_failures_are_kept_in_order_and_never_block_a_success(store: Store) -> None:
    good = make_record()
    for number in range(12):
        assert store.publish(replace(good, status="failed", outcome=None, message=str(number)))
    assert store.read(good.key) is None
    assert [record.message for record in store.failures(good.key)] == [str(number) for number in range(12)]
    assert store.last_failure(good.key).message == "11"
    assert store.publish(good)
    assert store.results([good.key]) == {good.key: good}
    assert len(store.failures(good.key)) == 12


def test_a_damaged_record_is_quarantined_and_named_and_its_cell_runs_again(store: Store) -> None:
    record = make_record()
    store.publish(record)
    path, every = store.path(record.key), damages(encode(record), 67)
    for number, damaged in enumerate(every, 1):
        path.write_bytes(damaged)
        reader = Store(store.folder, repair=False)
        assert (reader.read(record.key), len(reader.damaged), path.read_bytes()) == (None, 1, damaged)
        assert store.read(record.key) is None
        (line,) = store.drain_warnings()
        assert line.startswith(f"{path}: ")
        assert line.endswith(f"; now {record.key}.bad-{number}")
        assert path.with_suffix(f".bad-{number}").read_bytes() == damaged
        assert store.publish(record)
        assert store.read(record.key) == record
    assert verify(store).quarantined == len(every)
    for kind in ("failure", "conflict"):
        for damaged in every:
            path.with_suffix(f".{kind}-1.json").write_bytes(damaged)
            assert store.failures(record.key) == []
            assert store.read(record.key) == record


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


def test_what_cannot_be_quarantined_stays_where_it_is(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    path = store.path(make_record().key)
    path.parent.mkdir()
    path.write_bytes(b"damaged")
    calls, link = iter([OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))]), os.link

    def fail_first(*args: Any) -> None:
        if error := next(calls, None):
            raise error
        link(*args)

    monkeypatch.setattr(os, "link", fail_first)
    assert store.read(make_record().key) is None
    assert store.damaged == [f"{path}: is truncated or not a record; it cannot be moved: No space left on device"]
    assert path.read_bytes() == b"damaged"
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


def test_a_refused_read_or_write_is_reported_in_one_line_without_damage(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, new = make_record(), make_record(seed=1)
    store.publish(stored)
    with pytest.raises(StoreError) as caught, full_disk():
        store.publish(new)
    reported = "cannot be written, what was stored before is intact: File too large"
    assert caught.value.lines == (f"{store.path(new.key)}: {reported}",)
    assert names(store) == [f"{stored.key}.json"]

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    assert store.read(stored.key) == stored
    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(StoreError, match="cannot be read: Input/output error"):
        store.read(stored.key)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("links", [True, False])
def test_four_writers_publish_each_record_once(store: Store, without_links: Callable[[int], None], links: bool) -> None:
    if not links:
        without_links(errno.EPERM)

    def write(writer: int) -> int:
        records = [Record(f"{n:064x}", {}, "ok", Outcome(1, 1), provenance={"by": str(writer)}) for n in range(40)]
        return sum(map(Store(store.folder).publish, records))

    assert sum(forked(*(partial(write, writer) for writer in range(4)))) == 40
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


def test_a_plan_round_trips_and_what_replaced_it_is_named_in_one_line(store: Store) -> None:
    path = store.folder / "plan.json"
    assert not store.has_plan()
    with pytest.raises(StoreError, match=r"plan\.json: is missing; run the suite again, which writes it"):
        store.read_plan()
    plan = Store(GOLDEN, repair=False).read_plan()
    store.write_plan(plan)
    assert store.read_plan() == plan
    for text in ("", "{", "[]", '{"schema": 1}', '{"schema": "1"}', "[" * 100_000):
        path.write_text(text)
        with pytest.raises(DamagedPlanError, match=r"plan\.json: is damaged \(.*run the suite again") as caught:
            store.read_plan()
        assert len(caught.value.lines) == 1
    path.write_text('{"schema": 99}')
    with pytest.raises(StoreError, match="layout 99") as newer:
        store.read_plan()
    assert not isinstance(newer.value, DamagedPlanError)
    altered = damages(canonical_json(plan_to_json(plan)).encode(), 23)
    reported = 0
    for data in altered:  # read, or reported
        path.write_bytes(data)
        with contextlib.suppress(StoreError):
            store.read_plan()
            reported -= 1
        reported += 1
    assert reported > len(altered) / 3
    store.write_plan(Plan("suite", (), ()))
    assert store.read_plan() == Plan("suite", (), ())


def test_only_an_absent_or_empty_folder_or_a_store_is_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "absent/deep"):
        assert Store.find(tmp_path / name) is None
        Store.create(tmp_path / name).publish(make_record())
        assert Store.create(tmp_path / name).keys() == {make_record().key}
        assert Store.find(tmp_path / name) is not None
    (tmp_path / "odd/in").mkdir(parents=True)
    (tmp_path / "file").touch()
    Store.create(tmp_path / "results" / "one").write_plan(Plan("one", (), ()))
    for name, make, line in (
        ("none", Store, "is missing; name a result folder"),
        ("file", Store, "is not a folder; name a result folder"),
        ("odd", Store.create, "is not a result folder; it holds no plan.json"),
        ("results", Store, "is not a result folder; name one of those in it: one"),
    ):
        with pytest.raises(StoreError) as caught:
            make(tmp_path / name)
        assert caught.value.lines == (f"{tmp_path / name}: {line}",)
