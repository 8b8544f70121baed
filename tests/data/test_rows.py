"""Arrays computed by several processes are reproducible and survive faults and kills."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from msda_bench.api import Row, Rows
from msda_bench.data import Folders, LocalFiles
from msda_bench.data.rows import _listed
from msda_bench.errors import DataError

MAKE = "tests.data.rows_of_numbers:row"
KILLED = """
import sys; sys.path[:] = {path!r}
from pathlib import Path
from tests.data.test_rows import local, rows
local(Path(sys.argv[1]), 2).rows("numbers", rows(Path(sys.argv[2]), sleep=0.02))
"""


@pytest.fixture(autouse=True)
def _processes_find_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2])  # they get this process's path


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """Files in ten folders with thirty numbers each."""
    for folder in range(10):
        (tmp_path / f"in/{folder}").mkdir(parents=True)
        for number in range(30):
            (tmp_path / f"in/{folder}/{number:02}").write_text(str((folder * 30 + number) % 256))
    return tmp_path / "in"


def rows(folder: Path, sleep: float = 0) -> Rows:
    found = [(path, path.stat()) for path in sorted(folder.glob("*/*"))]
    every = [Row(str(path.relative_to(folder)), str(path), 0, at.st_size, at.st_mtime_ns) for path, at in found]
    return Rows(MAKE, tuple(every), (2, 2), {"sleep": sleep})


def local(cache: Path, processes: int) -> LocalFiles:
    return LocalFiles(Folders(None, cache), "numbers", processes)


def parts(cache: Path) -> dict[Path, int]:
    return {path: path.stat().st_ino for path in cache.glob("derived/parts/*.part")}


def kept(cache: Path) -> bytes:
    (path,) = cache.glob("derived/*.npy")
    return path.read_bytes()


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_the_number_of_processes(numbers: Path, tmp_path: Path, caplog) -> None:
    """Worker processes may print anything."""
    found = [local(tmp_path / f"{n}", n).rows("numbers", rows(numbers)) for n in (1, 2, 3)]
    assert isinstance(found[0], np.memmap)
    assert not found[0].flags.writeable
    assert np.array_equal(found[0], np.broadcast_to((np.arange(300) % 256)[:, None, None], (300, 2, 2)))
    assert len({kept(tmp_path / f"{n}") for n in (1, 2, 3)}) == 1
    assert caplog.messages == ["odd: 150 files: 0/01, 0/03, 0/05 and 147 more"] * 3
    assert not parts(tmp_path / "1")


@pytest.mark.slow
def test_after_a_kill_a_rerun_computes_only_missing_rows_with_identical_bytes(numbers: Path, tmp_path: Path) -> None:
    cache = tmp_path / "killed"
    command = [sys.executable, "-c", KILLED.format(path=sys.path), str(cache), str(numbers)]
    with subprocess.Popen(command, process_group=0) as process:
        while len(parts(cache)) < 3:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    until = time.monotonic() + 30
    while any(str(cache) in _arguments(path) for path in Path("/proc").glob("[0-9]*")):  # children end by themselves
        assert time.monotonic() < until
        time.sleep(0.1)
    before = parts(cache)
    assert 3 <= len(before) < 10
    with pytest.MonkeyPatch.context() as patch:
        seen: list[int] = []
        patch.setattr(Path, "unlink", lambda self, missing_ok=False: seen.extend(_inode(self)))
        local(cache, 1).rows("numbers", rows(numbers, sleep=0.02))
    assert set(before.values()) <= set(seen)
    local(tmp_path / "whole", 1).rows("numbers", rows(numbers, sleep=0.02))
    assert kept(cache) == kept(tmp_path / "whole")


def _inode(path: Path) -> list[int]:
    return [path.stat().st_ino] if path.exists() else []


def _arguments(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:
        return ""


def test_faults_are_counted_by_kind_and_nothing_is_computed_twice(numbers: Path, tmp_path: Path) -> None:
    for name in ("0/00", "0/29", "4/07", "9/03"):
        (numbers / name).write_text("none")
    (numbers / "5/05").write_text("")
    (numbers / "5/06").write_text("much")
    with pytest.raises(DataError) as caught:
        local(tmp_path, 2).rows("numbers", rows(numbers))
    remedy = "replace or remove them, then run the same command again: only what is missing is made"
    assert caught.value.lines == (
        f"empty: 1 file: 5/05; {remedy}",
        f"needs more memory than there is: 1 file: 5/06; {remedy}",
        f"no number: 4 files: 0/00, 0/29, 4/07 and 1 more; {remedy}",
    )
    before = parts(tmp_path)
    assert len(before) == 6
    for name in ("0/00", "0/29", "4/07", "5/05", "5/06"):
        (numbers / name).write_text("7")
    (numbers / "9/03").unlink()
    seen: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", lambda self, missing_ok=False: seen.extend(_inode(self)))
        found = local(tmp_path, 2).rows("other numbers", rows(numbers))
    assert found.shape == (299, 2, 2)
    assert set(before.values()) <= set(seen)


def test_a_process_that_dies_is_reported_and_the_rest_is_kept(numbers: Path, tmp_path: Path) -> None:
    (numbers / "3/00").write_text("die")
    with pytest.raises(
        DataError, match=r"was killed by SIGKILL.* while decoding \(3/00 to 3/29\); run the same command again"
    ) as caught:
        local(tmp_path, 1).rows("numbers", rows(numbers))
    assert len(caught.value.lines) == 1
    assert len(parts(tmp_path)) == 3


def test_an_error_of_the_function_that_makes_rows_is_its_authors_line(numbers: Path, tmp_path: Path) -> None:
    (numbers / "3/00").write_text("bug")
    with pytest.raises(DataError) as caught:
        local(tmp_path, 1).rows("numbers", rows(numbers))
    (line,) = caught.value.lines
    assert line.startswith(f"{MAKE} failed while decoding 3/00: tests/data/rows_of_numbers.py:")
    assert "FileNotFoundError" in line


def test_without_processes_an_array_is_read_but_not_made(numbers: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not made yet, or damaged; `msda-bench run` makes it"):
        local(tmp_path / "cache", 0).rows("numbers", rows(numbers))
    assert not (tmp_path / "cache").exists()
    local(tmp_path / "cache", 1).rows("numbers", rows(numbers))
    assert local(tmp_path / "cache", 0).rows("numbers", rows(numbers)).shape == (300, 2, 2)


@pytest.mark.slow
def test_only_truncated_or_damaged_files_are_computed_again(numbers: Path, tmp_path: Path) -> None:
    files = local(tmp_path, 1)
    files.rows("numbers", rows(numbers))
    (path,) = tmp_path.glob("derived/*.npy")
    at = path.stat().st_ino
    files.rows("numbers", rows(numbers))
    assert path.stat().st_ino == at
    whole = path.read_bytes()
    for damaged in (whole[:500], b"PK\x03\x04" + whole[4:], whole[:10] + b"((" + whole[12:]):
        path.write_bytes(damaged)
        assert np.array_equal(files.rows("numbers", rows(numbers))[:, 0, 0], np.arange(300) % 256)
        assert path.read_bytes() == whole


def test_changed_bytes_are_never_used(numbers: Path, tmp_path: Path, caplog) -> None:
    """Neither in an array whose time of modification was set back, nor in the parts of an unfinished one."""
    files = local(tmp_path, 1)
    files.rows("numbers", rows(numbers))
    (path,) = tmp_path.glob("derived/*.npy")
    at, whole = path.stat(), path.read_bytes()
    path.write_bytes(whole[:-1] + b"?")
    os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))
    assert files.rows("numbers", rows(numbers))[-1, -1, -1] == 299 % 256
    assert caplog.messages[1] == f"{path}: its bytes have no right checksum; it is made again"
    assert path.read_bytes() == whole
    (numbers / "9/03").write_text("none")
    with pytest.raises(DataError):
        files.rows("more", rows(numbers))
    for part in parts(tmp_path):
        part.write_bytes(bytes(len(part.read_bytes())))
    (numbers / "9/03").write_text(str(273 % 256))
    assert np.array_equal(files.rows("more", rows(numbers))[:, 1, 1], np.arange(300) % 256)


def test_unchanged_bytes_are_read_only_after_a_copy(numbers: Path, tmp_path: Path) -> None:
    local(tmp_path / "cache", 1).rows("numbers", rows(numbers))
    shutil.copytree(tmp_path / "cache", tmp_path / "copy")
    seen: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        hashed = hashlib.file_digest
        patch.setattr(hashlib, "file_digest", lambda stream, kind: seen.append(stream) or hashed(stream, kind))
        for cache, count in (("cache", 0), ("copy", 1), ("copy", 1)):
            local(tmp_path / cache, 0).rows("numbers", rows(numbers))
            assert len(seen) == count


def test_an_unwritable_folder_is_reported_in_one_line(numbers: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    with pytest.raises(DataError, match=r"cannot be written: .*; free space, or set MSDA_BENCH_CACHE"):
        local(tmp_path / "cache", 1).rows("numbers", rows(numbers))


def test_leftovers_of_a_killed_process_are_removed_if_possible(numbers: Path, tmp_path: Path) -> None:
    files = local(tmp_path, 1)
    files.rows("numbers", rows(numbers))
    (path,) = tmp_path.glob("derived/*.npy")
    path.rename(left := path.with_name(f".{path.name}.00000000-1-{'0' * 32}.tmp"))
    (old := path.parent / "parts/another's").mkdir()
    os.utime(old, (0, 0))
    assert files.rows("numbers", rows(numbers)).shape == (300, 2, 2)
    assert not left.exists()
    assert old.exists()


@pytest.mark.parametrize("together", [None, 16])
def test_a_file_that_became_shorter_or_vanished_since_it_was_listed_is_named(
    numbers: Path, tmp_path: Path, together: int | None
) -> None:
    for change, words in (
        (lambda path: path.write_text(""), "truncated since"),
        (Path.unlink, "not readable [(]No such"),
    ):
        listed = replace(rows(numbers), rows=rows(numbers).rows[90:120], together=together)
        change(numbers / "3/07")
        named = f"{numbers}/3/07: {words}" if together else f"{words}.*: 1 file: 3/07"
        with pytest.raises(DataError, match=named):
            local(tmp_path, 1).rows("numbers", listed)


def test_unwritable_parts_are_reported_with_a_remedy(numbers: Path, tmp_path: Path) -> None:
    parts = tmp_path / "derived/parts"
    parts.parent.mkdir()
    parts.write_text("no folder")
    with pytest.raises(DataError, match=r"cannot be written: .*; free space, or set MSDA_BENCH_CACHE") as caught:
        local(tmp_path, 1).rows("numbers", rows(numbers))
    assert len(caught.value.lines) == 1


def test_an_array_changed_in_memory_is_not_read_from_its_file(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((4, 3), np.uint8))
    x = np.load(tmp_path / "x.npy", mmap_mode="c")
    x += 7
    (row, *_), (copy,) = _listed(x, tmp_path / "copy")
    assert (row.path, copy.read_bytes()) == (str(copy), x.tobytes())
