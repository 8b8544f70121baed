"""Columns equal the records, read or indexed, and the index never hides a changed file."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from pathlib import Path

import pytest

from msda_bench.errors import StoreError
from msda_bench.store import Outcome, Record, Store, index
from msda_bench.store.codec import encode
from msda_bench.store.columns import COLUMNS, Columns, columns_of, read_columns
from msda_bench.store.names import Faults
from msda_bench.store.verify import verify
from msda_bench.suite.cell import canonical_json

GOLDEN = Path(__file__).parent / "golden" / "schema-1"
WHERE = {"device": "cpu", "numba": None, "stack": 1, "distributions": {"b": "2", "a": "1"}}
CELLS = {hashlib.sha256(canonical_json({"seed": seed}).encode()).hexdigest(): {"seed": seed} for seed in range(8)}
KEYS = list(CELLS)


def made(key: str, correct: int = 5) -> Record:
    validation = {"v": correct / 10} if correct % 2 else {"v": 1, "w": 0.5}
    return Record(
        key, CELLS[key], "ok", Outcome(10, correct), provenance=WHERE, validation=validation, timing={"steps": 7}
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small folder that is indexed immediately, like a large one."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(index, "FEWEST", 1)
    monkeypatch.setattr(index, "_SETTLED", -1)
    store = Store.create(tmp_path / "results")
    for number, key in enumerate(KEYS[:6]):
        store.publish(made(key, number))
    store.publish(Record(KEYS[6], CELLS[KEYS[6]], "failed", message="first"))
    store.publish(Record(KEYS[6], CELLS[KEYS[6]], "failed", message="last"))
    time.sleep(0.02)  # the kernel's clock of files goes by steps
    return store.folder


def read(folder: Path) -> Columns:
    return read_columns(Store(folder, repair=False), KEYS)


def reads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys of the records that were read."""
    seen: list[str] = []
    whole = Store.read

    def read_one(self: Store, key: str, *, curves: bool = True) -> Record | None:
        seen.append(key)
        return whole(self, key, curves=curves)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "read", read_one)
        read(folder)
    return seen


@pytest.mark.parametrize("again", [False, True])
def test_columns_equal_the_records_whether_read_or_indexed(folder, again):
    if again:
        read(folder)
    store, found = Store(folder), read(folder)
    expected = columns_of(store.records(KEYS))
    assert found == expected
    assert found.keys == KEYS[:7]
    assert found.values["status"] == ["ok"] * 6 + ["failed"]
    assert found.values["message"] == [None] * 6 + ["last"]
    assert found.values["n_correct"] == [0, 1, 2, 3, 4, 5, None]
    assert found.values["distributions"][0] == (("a", "1"), ("b", "2"))
    assert found.values["validation"][:2] == [(("v", 1), ("w", 0.5)), (("v", 0.1),)]
    assert found.values["numba"] == [""] * 6 + [None]


def test_a_folder_that_has_not_changed_is_not_read_again(folder, monkeypatch):
    assert reads(folder, monkeypatch) == KEYS
    assert reads(folder, monkeypatch) == KEYS[6:]
    Store(folder).publish(made(KEYS[7]))
    assert reads(folder, monkeypatch) == KEYS[6:]
    assert reads(folder, monkeypatch) == KEYS[6:7]


def spoil(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"n_test":10', b'"n_test":90'))


def rewrite(path: Path) -> None:
    was = path.stat()
    spoil(path)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def swap(path: Path) -> None:
    shutil.copy2(path, path.with_name("x"))
    rewrite(path.with_name("x"))
    path.with_name("x").replace(path)


CHANGES = {
    "a byte": spoil,
    "a byte, with the old time of writing": rewrite,
    "another file in its place": swap,
    "a link in its place": lambda path: (path.rename(path.with_name("x")), path.symlink_to("x")),
    "cut": lambda path: os.truncate(path, 100),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changed_never_passes_as_good(folder, change):
    before, store = read(folder), Store(folder, repair=False)
    CHANGES[change](store.path(KEYS[2]))
    for _ in range(2):
        found = read(folder)
        assert found.keys == [key for key in before.keys if key != KEYS[2]]
        assert found.faults == Faults(damaged=frozenset({KEYS[2]}))
        assert [str(store.path(KEYS[2])) in line for line in found.lines] == [True]
    assert len([line for line in verify(store).bad if str(store.path(KEYS[2])) in line]) == 1


def test_a_record_replaced_by_another_is_read(folder):
    read(folder)
    path = Store(folder).path(KEYS[2])
    path.write_bytes(encode(made(KEYS[2], 9)))
    assert read(folder).values["n_correct"][2] == 9


def test_a_file_that_may_still_change_is_not_indexed(folder, monkeypatch):
    monkeypatch.setattr(index, "_SETTLED", 3600 * 10**9)
    read(folder)
    assert not (folder / index.INDEX).exists()


def test_store_verify_reads_all_whatever_the_index_says(folder, monkeypatch):
    read(folder)
    path = Store(folder).path(KEYS[2])
    stamp = index.stamp_of(str(path))
    CHANGES["a byte"](path)
    monkeypatch.setattr("msda_bench.store.columns.stamp_of", lambda _: stamp)  # as if the disk had done it
    assert KEYS[2] in read(folder).keys
    assert verify(Store(folder)).bad == [f"{path}: does not match its own sha256"]


def test_a_damaged_or_outdated_index_is_ignored(folder, monkeypatch):
    read(folder)
    path = folder / index.INDEX
    whole, stamp = path.read_bytes(), index.stamp_of(str(Store(folder).path(KEYS[0])))
    assert index.Index(folder, COLUMNS, 9).find(KEYS[0], stamp) is not None
    for place in range(0, len(whole), 7):
        for spoiled in (whole[:place], whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]):
            path.write_bytes(spoiled)
            assert index.Index(folder, COLUMNS, 9).find(KEYS[0], stamp) is None
    path.write_bytes(whole[: len(whole) // 2])
    assert reads(folder, monkeypatch) == KEYS
    assert path.read_bytes() == whole
    monkeypatch.setattr(index, "LAYOUT", 2)
    assert reads(folder, monkeypatch) == KEYS
    assert path.read_bytes() != whole


@pytest.mark.parametrize("body", [b"{}", b"[]", b"[1,2]", b'["HEAD",["k"],[[1]],{}]', b"[" * 100_000, b"\xff", b"NaN"])
def test_an_index_of_another_shape_is_ignored_despite_a_valid_sha256(folder, monkeypatch, body):
    read(folder)
    head = (folder / index.INDEX).read_bytes().split(b'"')[1]
    data = body.replace(b"HEAD", head)
    (folder / index.INDEX).write_bytes(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
    assert reads(folder, monkeypatch) == KEYS


def test_a_blocked_index_or_read_only_folder_changes_nothing(folder, monkeypatch):
    (folder / index.INDEX).mkdir()
    expected = columns_of(Store(folder).records(KEYS))
    assert read(folder) == expected
    assert read(folder) == expected
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]


def test_a_small_folder_gets_no_index(tmp_path):
    shutil.copytree(GOLDEN, tmp_path / "results")
    store = Store(tmp_path / "results", repair=False)
    before = sorted(store.folder.iterdir())
    assert len(read_columns(store, [cell.key for cell in store.read_plan().cells]).keys) == 5
    assert sorted(store.folder.iterdir()) == before


def test_conflicts_and_unreadable_files_are_reported(folder):
    Store(folder).publish(made(KEYS[1], 9))
    found = read(folder)
    assert found.faults == Faults(conflicting=frozenset({KEYS[1]}))
    assert read_columns(Store(folder), KEYS[2:]).faults == Faults()
    assert [line.endswith(".conflict-1.json: another result for the same cell") for line in found.lines] == [True]
    with pytest.raises(StoreError, match="is not a cell's key"):
        read_columns(Store(folder), ["../x"])


@pytest.mark.parametrize("repair", [True, False])
def test_damage_is_reported_until_the_cell_is_trained_again(folder, repair):
    assert read(folder).faults == Faults()
    path = Store(folder).path(KEYS[2])
    path.write_bytes(b"{")
    Store(folder).publish(Record(KEYS[2], CELLS[KEYS[2]], "failed", message="no"))  # which does not hide it
    for _ in range(2):
        assert read_columns(Store(folder, repair=repair), KEYS).faults == Faults(damaged=frozenset({KEYS[2]}))
        assert path.exists() != repair
    Store(folder).publish(made(KEYS[2]))
    assert read(folder).faults == Faults()
