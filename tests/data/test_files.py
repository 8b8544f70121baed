from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from msda_bench.api import ByHand, File
from msda_bench.data.files import LocalFiles
from msda_bench.data.folders import Folders
from msda_bench.errors import DataError
from tests.data.refusal import only_line


def put(folder: Path, content: bytes) -> Path:
    path = folder / "toy/data.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_the_given_folder_wins_over_the_cache(where, make_file):
    cached = put(where.cache, b"right")
    assert LocalFiles(where).path(make_file(b"right")) == cached
    given = put(where.given, b"right")
    assert LocalFiles(where).path(make_file(b"right")) == given


def test_a_missing_file_names_the_remedies(where, make_file):
    line = only_line(LocalFiles(where, "toy").path, make_file(b"right"))
    assert line.startswith("toy/data.bin: not in MSDA_BENCH_DATA (")
    assert "msda-bench data fetch toy" in line
    assert "--fetch" in line


@pytest.mark.parametrize(
    ("content", "what"), [(b"rig", "truncated: 3 bytes"), (b"wrong", "wrong checksum: sha256 8810")]
)
def test_wrong_bytes_are_named_with_their_path(where, make_file, content, what):
    path = put(where.given, content)
    line = only_line(LocalFiles(where, "toy").path, make_file(b"right"))
    assert line.startswith(f"{path}: {what}")
    assert "msda-bench data fetch toy" in line


def test_a_file_without_a_source_is_reported_with_its_checksum(where):
    file = File("toy/data.bin", None, None, ByHand("published by them"), md5="ab" * 16)
    line = only_line(LocalFiles(where, "toy").path, file)
    assert line.startswith("toy/data.bin: not in MSDA_BENCH_DATA (")
    how = f"published by them; place it yourself below a folder named by MSDA_BENCH_DATA (md5 {'ab' * 16})"
    assert line.endswith(f": {how}")
    path = put(where.given, b"wrong")
    line = only_line(LocalFiles(where, "toy").path, file)
    assert line.startswith(f"{path}: wrong checksum: md5")
    assert line.endswith("; replace it")


def test_a_users_file_is_read_if_the_suite_gives_its_checksum(where):
    file = File("toy/data.bin", None, None, ByHand("made by you"))
    line = only_line(LocalFiles(where, "toy").path, file)
    how = "made by you; place it yourself below a folder named by MSDA_BENCH_DATA, and give its sha256 in the suite"
    assert line.endswith(f": {how}")
    path, found = put(where.given, b"mine"), hashlib.sha256(b"mine").hexdigest()
    line = only_line(LocalFiles(where, "toy").path, file)
    told = f"not read, since no checksum was given; it has sha256 {found}"
    assert line == f"{path}: {told}; if it is the right file, give its checksum in the suite"
    assert LocalFiles(where, "toy").path(replace(file, sha256=found)) == path


def test_a_valid_cached_copy_replaces_a_wrong_one(where, make_file):
    put(where.given, b"wrong")
    cached = put(where.cache, b"right")
    assert LocalFiles(where).path(make_file(b"right")) == cached


def test_bytes_are_read_once_for_each_instance(where, make_file):
    path = put(where.cache, b"right")
    files = LocalFiles(where)
    files.path(make_file(b"right"))
    path.write_bytes(b"wrong")
    assert files.path(make_file(b"right")) == path
    assert "wrong checksum" in only_line(LocalFiles(where).path, make_file(b"right"))


class Maker:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> dict[str, np.ndarray]:
        self.calls += 1
        return {"a": np.arange(5, dtype=np.int32), "b": np.array([[0.5]], np.float32)}


def same(left, right) -> bool:
    return left.keys() == right.keys() and all(
        left[key].dtype == right[key].dtype and np.array_equal(left[key], right[key]) for key in left
    )


def test_derived_arrays_are_computed_once(where):
    make = Maker()
    first = LocalFiles(where).derived("toy v1 / near", make)
    again = LocalFiles(where).derived("toy v1 / near", make)
    assert make.calls == 1
    assert same(first, make())
    assert same(first, again)


def test_names_that_look_alike_once_cleaned_are_kept_apart(where):
    files, make = LocalFiles(where), Maker()
    for name in ("a/b", "a b", "../a-b", "é"):
        files.derived(name, make)
    assert make.calls == 4
    assert len(list((where.cache / "derived").iterdir())) == 4


@pytest.mark.parametrize("damage", [lambda b: b[:-7], lambda b: b"", lambda b: b[:90] + bytes([b[90] ^ 1]) + b[91:]])
def test_damaged_derived_arrays_are_computed_again(where, damage):
    make = Maker()
    LocalFiles(where).derived("toy", make)
    (path,) = (where.cache / "derived").iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert same(LocalFiles(where).derived("toy", make), Maker()())
    assert make.calls == 2
    LocalFiles(where).derived("toy", make)
    assert make.calls == 2


def test_a_cache_that_cannot_be_written_costs_time_and_a_warning_only(tmp_path, caplog):
    (tmp_path / "plain").write_bytes(b"")
    files, make = LocalFiles(Folders(None, tmp_path / "plain")), Maker()
    with caplog.at_level(logging.WARNING):
        assert same(files.derived("toy", make), files.derived("toy", make))
    assert make.calls == 2
    assert len(caplog.records) == 1
    assert "made again each time" in caplog.text


def test_object_arrays_are_refused(where):
    with pytest.raises(ValueError, match="must not hold Python objects"):
        LocalFiles(where).derived("toy", lambda: {"a": np.array([None])})
    assert not (where.cache / "derived").exists()


def test_a_failing_computation_leaves_nothing(where):
    def make():
        raise DataError("line 3")

    with pytest.raises(DataError, match="line 3"):
        LocalFiles(where).derived("toy", make)
    assert not where.cache.exists()
