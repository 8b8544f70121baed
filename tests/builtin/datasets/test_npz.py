"""Valid and invalid archives of arrays."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from msda_bench.api import DataError
from msda_bench_builtin.datasets.npz import read_npz
from tests.data.refusal import only_line


def refused(path: Path) -> str:
    line = only_line(read_npz, path, ("x", "y"))
    assert line.startswith(f"{path}: ")
    return line.removeprefix(f"{path}: ")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_round_trip(tmp_path: Path, save: Callable[..., None]) -> None:
    path = tmp_path / "a.npz"
    save(path, x=np.eye(3), y=np.arange(3), more=np.zeros(1))
    found = read_npz(path, ("x", "y"))
    assert found["x"].tolist() == np.eye(3).tolist()
    assert found["y"].tolist() == [0, 1, 2]


def test_a_missing_array_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.eye(3), labels=np.arange(3))
    assert refused(tmp_path / "a.npz") == "has no array y; it holds x, labels"
    np.savez(tmp_path / "a.npz")
    assert refused(tmp_path / "a.npz") == "has no array x or y; it holds nothing"


def test_python_objects_are_not_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{}], dtype=object), y=np.arange(1))
    assert refused(tmp_path / "a.npz").startswith("cannot be read (Object arrays cannot be loaded")


def test_files_that_are_not_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.save(tmp_path / "a.npy", np.eye(3))
    for content in (b"", b"PK", b"hello", (tmp_path / "a.npy").read_bytes()):
        path.write_bytes(content)
        assert refused(path) == "is not a complete npz archive; write it with numpy.savez"


def test_a_truncated_or_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.random.default_rng(0).random((20, 3)), y=np.arange(20))
    whole = path.read_bytes()
    for place in range(0, len(whole) - 22, 7):
        path.write_bytes(whole[:place])
        assert "complete npz archive" in refused(path)
    count = 0
    places = range(0, len(whole), 3)
    for place in places:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            read_npz(path, ("x", "y"))
        except DataError:
            count += 1  # the others are bytes that nobody looks at, such as dates
    assert count > len(places) / 2


def test_arrays_of_huge_declared_size_and_non_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"
    huge = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    for member, reported in [(huge, "cannot be read ("), (b"text", "has no array x or y"), (b"", "cannot|has no")]:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", member)
            archive.writestr("y.npy", member)
        assert re.match(reported.replace("(", "\\("), refused(path))
