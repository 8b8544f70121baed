"""A result folder is a log: what is written stays, the first result counts, and sealing changes no result."""

import contextlib
import gzip
import hashlib
import os
import signal
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from msda_bench.errors import StoreError
from msda_bench.store import Outcome, Store
from msda_bench.store.check import merge, verify
from msda_bench.store.codec import encode
from msda_bench.store.compact import compact
from tests.logs import contents
from tests.store.conftest import forked, kept_with, make_record
from tests.store.test_codec import forged


def names(folder):
    return sorted(contents(folder))


def reread(store):
    """The store as another process finds it."""
    return Store(store.folder).refresh()


def log_of(store):
    (path,) = (store.folder / "log").glob("*.jsonl")
    return path


def damages(data, step):
    """The data with a bit flipped, or cut, at some of its bytes."""
    flipped = [
        data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]
        for place in range(0, len(data), step)
        for bit in (0x10, 0x80)
    ]
    return [*flipped, *(data[:place] for place in range(0, len(data), step))]


def failed(number, **fields):
    return make_record(status="failed", outcome=None, message=str(number), **fields)


@pytest.mark.parametrize("sealed", [False, True])
def test_the_first_result_counts_equal_ones_mean_nothing_and_others_are_named_for_ever(store, sealed):
    first = make_record()
    other = replace(first, outcome=Outcome(100, 81))
    for record in (failed(0), failed(1), first, replace(first, provenance={"runner": 2}), other, make_record(1)):
        store.publish(record)
    if sealed:
        assert compact(store) == []
        assert names(store.folder) == ["records.jsonl.gz"]
        store.publish(replace(other, timing={"train": 99.0}))
        assert compact(store) == []
        lines = gzip.decompress((store.folder / "records.jsonl.gz").read_bytes()).splitlines(keepends=True)
        assert sorted(lines) == sorted(map(encode, (failed(0), failed(1), first, other, make_record(1))))
    fresh = reread(store)
    assert (fresh.read(first.key), fresh.read(make_record(1).key)) == (first, make_record(1))
    assert [stored.message for stored in fresh.failures[first.key]] == ["0", "1"]
    (line,) = fresh.conflicting([first.key, make_record(1).key]).values()
    assert line.endswith(f": another result for the same run, {first.key}")
    assert verify(fresh).conflicts == [line]
    assert fresh.faults == []


def test_what_others_write_is_read_as_it_comes(store):
    reader = reread(store)
    assert reader.read(make_record().key) is None
    for record in (failed(0), make_record()):
        other = Store(store.folder)
        other.publish(record)
        assert reader.refresh().read(record.key) == record
    compact(store)
    assert reader.read(make_record().key) == make_record()  # though its log is gone
    assert Store(store.folder, sealed=False).refresh().results == {}
    store.publish(make_record(1))
    assert Store(store.folder, sealed=False).refresh().results.keys() == {make_record(1).key}


def test_every_damage_to_a_log_costs_its_record_alone_and_is_named_once(store):
    for seed in range(3):
        store.publish(make_record(seed))
    path, lines = log_of(store), [encode(make_record(seed)) for seed in range(3)]
    path = path.rename(path.with_name("00000000-1-ab.jsonl"))  # of another machine
    for damaged in damages(lines[1], 67):
        if damaged and b"\n" not in damaged[:-1]:
            whole = damaged if damaged.endswith(b"\n") else damaged + b"\n"
            path.write_bytes(lines[0] + whole + lines[2])
            fresh = reread(store)
            assert (len(fresh.results), len(fresh.drain_warnings()), fresh.refresh().faults) == (2, 1, [])
    for length in range(1, len(lines[2]), 97):  # a crash
        path.write_bytes(b"".join(lines[:2]) + lines[2][:length])
        fresh = reread(store)
        assert fresh.results.keys() == {make_record(seed).key for seed in range(2)}
        assert fresh.drain_warnings() == [f"{path}: ends in an unfinished line"]
        assert fresh.refresh().faults == []
        path.write_bytes(b"".join(lines))  # it was still being written
        assert len(fresh.refresh().results) == 3
    path.write_bytes(b"".join(lines[:2]) + lines[2][:50])
    assert len(compact(store)) == 1
    assert names(store.folder) == ["records.jsonl.gz"]


def test_every_damage_to_a_sealed_file_costs_the_records_near_it_and_is_named(store):
    noise = np.random.default_rng(0)
    for seed in range(600):
        store.publish(make_record(seed, message=noise.bytes(600).hex()))
    compact(store)
    path = store.folder / "records.jsonl.gz"
    data = path.read_bytes()
    between = data.find(data[:8], 1)
    for damaged in [*damages(data, len(data) // 7 + 1)[1:], data[:between], data[:-20], data[:-1]]:
        path.write_bytes(damaged)
        fresh = reread(store)
        truncated = len(damaged) < len(data)
        assert fresh.faults
        assert len(fresh.results) >= 600 * len(damaged) // len(data) - 200
        assert truncated or len(fresh.results) >= 300
        assert all(fresh.read(key).key == key for key in [*fresh.results][::50])
    path.write_bytes(gzip.compress(gzip.decompress(data)) + gzip.compress(b""))  # by someone else
    assert (len(reread(store).results), reread(store).faults) == (600, [])


EMPTY = gzip.compress(b"", mtime=0)
JOINED = {
    "two sealed files": (lambda sealed, _: sealed[0] + sealed[1], 2, 0),
    "an empty member in front": (lambda sealed, _: EMPTY + sealed[0], 1, 0),
    "a member without an end": (lambda sealed, _: sealed[0] + sealed[1].removesuffix(EMPTY), 2, 1),
    "a line that nobody compressed": (lambda sealed, lines: sealed[0] + lines[1] + sealed[0], 2, 0),
    "the same, but not finished": (lambda sealed, lines: sealed[0] + lines[0] + lines[1][:-9], 1, 1),
    "bytes that mean nothing": (lambda sealed, _: sealed[0] + b"\n\n\0\xff", 1, 1),
    "a damaged file of another program, then one": (
        lambda sealed, lines: gzip.compress(lines[1])[:-12] + bytes(9) + gzip.compress(lines[1], mtime=1) + sealed[0],
        2,
        1,
    ),
    "half a line, then a whole one": (lambda _, lines: gzip.compress(lines[0][:99] + lines[1]) + EMPTY, 1, 1),
}


@pytest.mark.parametrize("name", JOINED)
def test_what_was_joined_to_a_sealed_file_is_read_or_named_and_sealing_loses_none_of_it(store, name):
    join, results, faults = JOINED[name]
    lines = [encode(make_record(seed)) for seed in range(2)]
    data = join([gzip.compress(line, mtime=0) + EMPTY for line in lines], lines)
    (store.folder / "records.jsonl.gz").write_bytes(data)
    checked = verify(Store(store.folder))
    assert (checked.records, len(checked.bad)) == (results, faults)
    named = compact(store)
    assert (len(reread(store).results), len(named)) == (results, faults and faults + 1)
    kept = [path.read_bytes() for path in store.folder.glob("records.jsonl.gz.damaged-*")]
    assert kept == ([data] if faults else [])
    assert verify(Store(store.folder)).bad == []


def test_a_log_that_was_joined_to_one_that_was_cut_off_is_read(store):
    lines = [encode(make_record(seed)) for seed in range(3)]
    (store.folder / "log/00000000-1-ab.jsonl").write_bytes(lines[0] + lines[1][:-50] + lines[2])
    fresh = reread(store)
    assert fresh.results.keys() == {make_record(seed).key for seed in (0, 2)}
    (line,) = fresh.faults
    assert line.endswith(f"; it is of run {make_record(1).key}")


def test_archives_of_arrays_that_were_joined_are_read_and_what_follows_their_end_is_named(tmp_path):
    archives, records = [], [kept_with(float(seed), seed=seed) for seed in range(2)]
    for record in records:
        made = Store.create(tmp_path / str(record.cell["seed"]))
        made.publish(record)
        compact(made)
        archives.append((made.folder / "arrays.zip").read_bytes())
    damaged = archives[1].replace(b"numpy", b"NUMPY").replace(b"label", b"LABEL")
    for number, (data, read) in enumerate(
        ((archives[0] + archives[1], 2), (archives[1] + damaged + archives[0], 2), (archives[0] + b"more", 1))
    ):
        store = Store.create(tmp_path / f"joined-{number}")
        for record in records:
            store.publish(replace(record, arrays={}))
        store.publish(kept_with(9.0, seed=9))
        (store.folder / "arrays.zip").write_bytes(data)
        checked = verify(Store(store.folder))
        line = f"{store.folder}/arrays.zip: is damaged: bytes follow the end of the archive; move it away, "
        assert [bad.startswith(line) for bad in checked.bad] == [True] * (2 - read)
        if read < 2:
            kept = partial(store.kept, records[1], "predictions")
            for act in (partial(compact, store), partial(merge, store, store), kept):
                with pytest.raises(StoreError, match="bytes follow the end of the archive"):
                    act()
            assert (store.folder / "arrays.zip").read_bytes() == data
            assert store.kept(records[0], "predictions")["label"].tolist() == [0]
        else:
            compact(store)
            for record in records:
                assert store.kept(record, "predictions")["label"].tolist() == [record.cell["seed"]]


def test_bombs_are_one_line(store, monkeypatch):
    store.publish(make_record())
    compact(store)
    path = store.folder / "records.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-20] + gzip.compress(bytes(1 << 28), mtime=0))
    (line,) = reread(store).faults
    assert line.endswith("expands to more than 512 times its size")
    path.write_bytes(gzip.compress(b"\n" * 100_000 + encode(make_record()), 0) + gzip.compress(b""))
    fresh = reread(store)
    assert (len(fresh.faults), len(fresh.results)) == (21, 1)
    path.unlink()
    (store.folder / "log").mkdir()
    (store.folder / "log/00000000-1-ab.jsonl").write_bytes(b"x" * 5000)
    monkeypatch.setattr("msda_bench.store.log.LIMIT", 1000)
    monkeypatch.setattr("msda_bench.store.log._BLOCK", 500)
    (line,) = reread(store).faults
    assert line.endswith("has a line of more than 1000 bytes")
    with zipfile.ZipFile(store.folder / "arrays.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        data = bytes(1 << 20)
        name = f"{make_record().key}.predictions-{hashlib.sha256(data).hexdigest()}.npz"
        archive.writestr(name, data)
    with pytest.raises(StoreError, match=r"arrays\.zip/.*: is damaged"):  # it is not expanded
        store.arrays.read(name)


def test_a_newer_record_is_refused_and_never_taken_for_damage(store):
    store.publish(make_record())
    with log_of(store).open("ab") as log:
        log.write(forged({}, 99))
    before = log_of(store).read_bytes()
    for act in (Store.refresh, compact, verify):
        with pytest.raises(StoreError, match="has schema 99, but this msda-bench reads 1; install a newer one"):
            act(Store(store.folder))
    assert log_of(store).read_bytes() == before


def test_arrays_stand_beside_the_result_and_are_sealed_and_merged(store, tmp_path):
    record = kept_with(1.0)
    store.publish(record)
    store.publish(kept_with(2.0, outcome=Outcome(100, 81)))
    name = reread(store).results[record.key].arrays["predictions"]
    for sealed in (False, True):
        assert not sealed or compact(store) == []
        fresh = reread(store)
        assert name in fresh.arrays.names()
        assert fresh.kept(fresh.read(record.key), "predictions")["label"].tolist() == [1.0]
        assert fresh.kept(fresh.read(record.key), "weights") is None
    into = Store.create(tmp_path / "other")
    merge(into, store)
    compact(into)
    assert into.kept(into.refresh().read(record.key), "predictions")["label"].tolist() == [1.0]
    assert verify(Store(into.folder)).bad == []
    archive = into.folder / "arrays.zip"
    for data in damages(archive.read_bytes(), 13):
        archive.write_bytes(data)
        with contextlib.suppress(StoreError):
            kept = reread(into).kept(record, "predictions")
            assert kept is None or kept["label"].tolist() == [1.0]
    archive.unlink()
    assert reread(into).kept(record, "predictions") is None
    assert verify(Store(into.folder)).without == {"predictions": 1}
    merge(into := Store(into.folder), store)
    assert into.kept(record, "predictions")["label"].tolist() == [1.0]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_writers_and_a_sealer_at_once_lose_nothing(store):
    """Four processes write while others seal again and again, and one writer is frozen for a while."""
    frozen = store.folder.parent / "frozen"

    def write(writer):
        mine = Store(store.folder)
        for n in range(60):
            if writer == 0 and n == 20:
                frozen.write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGSTOP)
            mine.publish(make_record(n, provenance={"by": str(writer)}))
            mine.publish(make_record(1000 * writer + n))

    def seal():
        while not frozen.exists():
            compact(Store(store.folder))
        for _ in range(5):
            compact(Store(store.folder))
        os.kill(int(frozen.read_text()), signal.SIGCONT)
        for _ in range(5):
            compact(Store(store.folder))

    assert forked(*(partial(write, writer) for writer in range(4)), seal) == [0] * 5
    compact(store)
    fresh = reread(store)
    assert len(fresh.results) == 60 + 4 * 60 - 60
    assert fresh.faults == []
    assert [*fresh.conflicting(fresh.results)] == []
    assert names(store.folder) == ["records.jsonl.gz"]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("folder", ["arrays", "log"])
def test_a_folder_that_sealing_removes_before_a_file_is_in_it_is_made_again(store, monkeypatch, folder):
    (store.folder / "log").rmdir()
    mkdir, gone = Path.mkdir, []

    def made_and_removed(path, *given, **options):
        mkdir(path, *given, **options)
        if path.name == folder and len(gone) < 2:
            path.rmdir()
            gone.append(path)

    monkeypatch.setattr(Path, "mkdir", made_and_removed)
    monkeypatch.setattr("msda_bench.atomic.sync", lambda _: None)
    store.publish(kept_with(1.0, seed=0))
    assert len(gone) == 2
    assert len(reread(store).results) == len(store.arrays.loose()) == 1


def test_twenty_writers_give_the_bytes_of_one(store, tmp_path):
    """As an array job: each publishes its shard, with arrays, and seals the folder, unless another does so."""
    alone, n = Store.create(tmp_path / "alone"), 20

    def write(into, shard, shards):
        for seed in range(shard, 5 * n, shards):
            into.publish(failed(0, seed=seed))
            into.publish(kept_with(float(seed), seed=seed))
        with contextlib.suppress(StoreError):
            compact(into)

    write(alone, 0, 1)
    assert forked(*(partial(write, Store(store.folder), shard, n) for shard in range(n))) == [0] * n
    assert compact(store) == []
    assert names(store.folder) == ["arrays.zip", "records.jsonl.gz"]
    assert contents(store.folder) == contents(alone.folder)
    assert reread(store).faults == []
