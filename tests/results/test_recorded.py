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

import msda_bench as mb
from msda_bench.cli.main import main
from msda_bench.results import recorded
from msda_bench.store import Outcome, Record, Store
from msda_bench.store.files import encode

RESULTS = Path(__file__).parents[2] / "results" / "ablation-digits-scale"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small folder of records that is cached immediately, like a large one; it was read once."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
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


def reads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of records that were read."""
    keys: list[str] = []
    read = Store.read

    def counted(self: Store, key: str, *, curves: bool = True) -> Record | None:
        keys.append(key)
        return read(self, key, curves=curves)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "read", counted)
        mb.load_results(folder)
    return len(keys)


def uncached(folder: Path) -> pd.DataFrame:
    (folder / recorded.INDEX).unlink(missing_ok=True)
    return mb.load_results(folder)


def test_a_cached_folder_gives_the_same_frame_without_reading_records(folder, monkeypatch):
    runs = mb.load_results(folder)
    assert reads(folder, monkeypatch) == 0
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


def test_only_new_records_are_read(folder, monkeypatch):
    records = [record_of(folder, number) for number in (3, 4)]
    for record in records:
        Store(folder).path(record.key).unlink()
    runs = mb.load_results(folder)
    assert (runs["status"] == "missing").sum() == 2
    Store(folder).publish(replace(records[0], status="failed", outcome=None, message="no memory"))
    Store(folder).publish(records[1])
    assert reads(folder, monkeypatch) == 2
    assert reads(folder, monkeypatch) == 1  # the failure
    by_key = mb.load_results(folder).set_index("key")
    assert by_key.loc[[record.key for record in records], "status"].tolist() == ["failed", "ok"]
    assert by_key.loc[records[0].key, "message"] == "no memory"


def spoil(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"n_test":', b'"n_test":1'))


def rewrite(path: Path) -> None:
    was = path.stat()
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"n_test":1', b'"n_test":2') if b'"n_test":1' in data else data[:-9] + b"x" * 9)
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def swap(path: Path) -> None:
    shutil.copy2(path, path.with_name("x"))
    rewrite(path.with_name("x"))
    path.with_name("x").replace(path)


def link(path: Path) -> None:
    path.rename(path.with_name("x"))
    path.symlink_to("x")


CHANGES = {
    "a byte": spoil,
    "a byte, with the old time of writing": rewrite,
    "another file in its place": swap,
    "a link in its place": link,
    "cut": lambda path: os.truncate(path, 100),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changed_never_passes_as_good(folder, change):
    path = path_of(folder)
    CHANGES[change](path)
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


def test_a_file_that_may_still_change_is_not_cached(folder, monkeypatch):
    monkeypatch.setattr(recorded, "_SETTLED", 3600 * 10**9)
    uncached(folder)
    assert not (folder / recorded.INDEX).exists()


def test_store_verify_reads_all_whatever_the_cache_says(folder, monkeypatch, capsys):
    path, stamp = path_of(folder), recorded._stamp
    kept = {record.stem: stamp(folder, record.stem) for record in folder.glob("cells/*/*.json")}
    spoil(path)
    monkeypatch.setattr(recorded, "_stamp", lambda _, key: kept[key])  # as if the disk had done it
    assert (mb.load_results(folder)["status"] == "ok").all()
    assert main(["store", "verify", str(folder)]) == 1
    assert f"{path}: does not match its own sha256" in capsys.readouterr().out


def test_a_copied_folder_does_not_believe_its_cache(folder, tmp_path, monkeypatch):
    shutil.copytree(folder, tmp_path / "copy")
    assert reads(tmp_path / "copy", monkeypatch) == len(list(folder.glob("cells/*/*.json")))


def test_a_damaged_or_older_cache_is_ignored(folder, monkeypatch):
    path, runs = folder / recorded.INDEX, mb.load_results(folder)
    whole = path.read_bytes()
    for place in range(0, len(whole), len(whole) // 9):
        for spoiled in (whole[:place], whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]):
            path.write_bytes(spoiled)
            assert reads(folder, monkeypatch) > 0
            pd.testing.assert_frame_equal(mb.load_results(folder), runs)
    for change in ("LAYOUT", "__version__"):
        with monkeypatch.context() as patch:
            patch.setattr(recorded, change, 0)
            assert reads(folder, monkeypatch) > 0
        uncached(folder)


@pytest.mark.parametrize("data", [b"", b"{}", b"[1, 2]", b"PK\x03\x04", b"[" * 100_000, b"\xff"])
def test_a_cache_of_another_shape_is_ignored_despite_a_valid_sha256(folder, monkeypatch, data):
    (folder / recorded.INDEX).write_bytes(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
    assert reads(folder, monkeypatch) > 0


def test_a_blocked_cache_changes_nothing(folder):
    runs = uncached(folder)
    (folder / recorded.INDEX).unlink()
    (folder / recorded.INDEX).mkdir()
    for _ in range(2):
        pd.testing.assert_frame_equal(mb.load_results(folder), runs)
    assert not list(folder.glob(".*.tmp"))


def test_a_small_folder_gets_no_cache(tmp_path):
    shutil.copytree(RESULTS, tmp_path / "results")
    before = sorted((tmp_path / "results").iterdir())
    mb.load_results(tmp_path / "results")
    assert sorted((tmp_path / "results").iterdir()) == before


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
