"""A folder that was read once is read again in a moment, and no changed file ever passes as good."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from msda_bench.store.files import encode

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.results import recorded
from msda_bench.store import Outcome, Record, Store

RESULTS = Path(__file__).parents[2] / "results" / "ablation-digits-scale"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small folder of records that is cached immediately, like a large one; it was read once."""
    monkeypatch.setattr(recorded, "FEWEST", 1)
    monkeypatch.setattr(recorded, "_SETTLED", -1)
    path = tmp_path / "results"
    shutil.copytree(RESULTS, path)
    mb.load_results(path)
    assert (path / recorded.INDEX).exists()
    return path


def path_of(folder: Path, number: int = 2) -> Path:
    return sorted((folder / "cells").glob("*/*.json"))[number]


def record_of(folder: Path, number: int = 2) -> Record:
    record = Store(folder).read(path_of(folder, number).stem)
    assert record is not None
    return record


@pytest.fixture
def reads(monkeypatch):
    """`reads(folder)`: the number of records that are read."""

    def count(folder: Path) -> int:
        keys: list[str] = []
        read = Store.read
        with monkeypatch.context() as patch:
            patch.setattr(Store, "read", lambda store, key, **options: keys.append(key) or read(store, key, **options))
            mb.load_results(folder)
        return len(keys)

    return count


def uncached(folder: Path) -> pd.DataFrame:
    (folder / recorded.INDEX).unlink(missing_ok=True)
    return mb.load_results(folder)


def test_a_cached_folder_gives_the_same_frame_without_reading_records(folder, reads, tmp_path):
    runs = mb.load_results(folder)
    assert reads(folder) == 0
    pd.testing.assert_frame_equal(runs, uncached(folder))
    run = runs.set_index("key").loc[path_of(folder).stem]
    record = record_of(folder)
    assert (run["status"], run["n_test"], run["n_correct"]) == ("ok", record.outcome.n_test, record.outcome.n_correct)
    assert (run["steps"], run["train_seconds"]) == (record.timing["steps"], record.timing["train"])
    assert (run["torch"], run["stack"]) == (record.provenance["torch"], record.provenance["stack"])
    assert not run["target_labels"]
    (name, version), *_ = record.provenance["distributions"].items()
    assert run[f"version:{name}"] == version
    assert {name: run[f"validator:{name}"] for name in record.validation} == record.validation
    shutil.copytree(folder, tmp_path / "copy")  # does not believe its cache
    assert reads(tmp_path / "copy") == len(list(folder.glob("cells/*/*.json")))


def test_only_new_records_are_read(folder, reads):
    records = [record_of(folder, number) for number in (3, 4)]
    for record in records:
        Store(folder).path(record.key).unlink()
    assert (mb.load_results(folder)["status"] == "missing").sum() == 2
    Store(folder).publish(replace(records[0], status="failed", outcome=None, message="no memory"))
    Store(folder).publish(records[1])
    assert reads(folder) == 2
    assert reads(folder) == 1  # the failure
    runs = mb.load_results(folder).set_index("key")
    assert runs.loc[[record.key for record in records], "status"].tolist() == ["failed", "ok"]
    assert runs.loc[records[0].key, "message"] == "no memory"


def spoil(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"n_test":', b'"n_test":1'))


def rewrite(path: Path) -> None:
    """Other bytes of the same length, with the old time of writing."""
    was, data = path.stat(), path.read_bytes()
    path.write_bytes(data[:-9] + b"x" * 9)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def swap(path: Path) -> None:
    shutil.copy2(path, path.with_name("x"))
    rewrite(path.with_name("x"))
    path.with_name("x").replace(path)


def link(path: Path) -> None:
    path.rename(path.with_name("x"))
    path.symlink_to("x")


@pytest.mark.parametrize("change", [spoil, rewrite, swap, link, lambda path: os.truncate(path, 100)])
def test_a_file_that_changed_never_passes_as_good(folder, change):
    path = path_of(folder)
    change(path)
    for _ in range(2):
        runs = mb.load_results(folder)
        assert runs.loc[runs["status"] == "missing", "key"].tolist() == [path.stem]
        assert [str(path) in line for line in runs.attrs["fault_lines"]] == [True]
    assert main(["store", "verify", str(folder)]) == 1


def test_a_record_replaced_by_another_is_read(folder):
    other = replace(record_of(folder), outcome=Outcome(10, 9))
    path_of(folder).write_bytes(encode(other))
    runs = mb.load_results(folder).set_index("key")
    assert (runs.loc[other.key, "n_correct"], runs.loc[other.key, "score"]) == (9, 90)


def test_small_folders_and_files_that_may_still_change_are_not_cached(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(recorded, "_SETTLED", 3600 * 10**9)
    uncached(folder)
    assert not (folder / recorded.INDEX).exists()
    monkeypatch.undo()
    shutil.copytree(RESULTS, tmp_path / "small")
    before = sorted((tmp_path / "small").iterdir())
    mb.load_results(tmp_path / "small")
    assert sorted((tmp_path / "small").iterdir()) == before


def test_store_verify_reads_all_whatever_the_cache_says(folder, monkeypatch, capsys):
    path, stamp = path_of(folder), recorded._stamp
    kept = {record.stem: stamp(folder, record.stem) for record in folder.glob("cells/*/*.json")}
    spoil(path)
    monkeypatch.setattr(recorded, "_stamp", lambda _, key: kept[key])  # as if the disk had done it
    assert (mb.load_results(folder)["status"] == "ok").all()
    assert main(["store", "verify", str(folder)]) == 1
    assert f"{path}: does not match its own sha256" in capsys.readouterr().out


def test_a_damaged_foreign_or_older_cache_is_ignored(folder, reads, monkeypatch):
    path, runs = folder / recorded.INDEX, mb.load_results(folder)
    whole, middle = path.read_bytes(), path.stat().st_size // 2
    shapes = (b"", b"{}", b"[1, 2]", b"PK\x03\x04", b"[" * 100_000, b"\xff")
    spoiled = [whole[:0], whole[:middle], whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]]
    spoiled += [hashlib.sha256(data).hexdigest().encode() + b"\n" + data for data in shapes]
    for data in spoiled:
        path.write_bytes(data)
        assert reads(folder) > 0
        pd.testing.assert_frame_equal(mb.load_results(folder), runs)
    for change in ("LAYOUT", "__version__"):
        with monkeypatch.context() as patch:
            patch.setattr(recorded, change, 0)
            assert reads(folder) > 0
        uncached(folder)
    path.unlink()
    path.mkdir()  # the cache is blocked
    pd.testing.assert_frame_equal(mb.load_results(folder), runs)
    assert not list(folder.glob(".*.tmp"))


def test_another_result_of_a_cell_is_reported(folder):
    record = record_of(folder)
    Store(folder).publish(replace(record, outcome=Outcome(10, 9)))
    runs = mb.load_results(folder)
    assert runs.attrs["faults"].conflicting == {record.key}
    (line,) = runs.attrs["fault_lines"]
    assert line.endswith(f"{record.key}.conflict-1.json: another result for the same cell")


@pytest.mark.parametrize("repair", [True, False])
def test_damage_is_reported_until_the_cell_is_trained_again(folder, repair):
    record, path = record_of(folder), path_of(folder)
    path.write_bytes(b"{")
    Store(folder, repair=False).publish(replace(record, status="failed", outcome=None, message="no"))  # hides nothing
    for _ in range(2):
        assert mb.load_results(folder, repair=repair).attrs["faults"].damaged == {record.key}
        assert path.exists() != repair
    Store(folder).publish(record)
    assert not mb.load_results(folder).attrs["faults"].damaged


def test_a_plan_with_no_key_is_refused_as_damaged(folder, capsys):
    plan = json.loads((folder / "plan.json").read_text())
    plan["cells"][0]["key"] = "../x"
    (folder / "plan.json").write_text(json.dumps(plan))
    assert main(["leaderboard", str(folder)]) == 2
    assert "plan.json: is damaged" in capsys.readouterr().err
