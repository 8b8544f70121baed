"""Arrays computed by several processes are reproducible and survive faults and kills."""

import hashlib
import os
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from msda_bench.api import Row, Rows
from msda_bench.data import Folders, LocalFiles
from msda_bench.errors import DataError
from tests.data.conftest import ThisProcess, only_line

MAKE = f"{__name__}:row"
REMEDY = "replace or remove them, then run the same command again: only what is missing is made"
WHOLE = np.arange(30)


def row(content):
    """A file's number, four times."""
    if content == b"0":
        os.write(1, b"a library in C says something\n")
        print("so does Python")
    if content == b"die":
        os.kill(os.getpid(), signal.SIGKILL)
    if content == b"much":
        np.empty(1 << 60, np.uint8)
    if content == b"bug":
        open(b"no such file")  # noqa: PTH123, SIM115
    if not content.isdigit():
        raise DataError("no number" if content else "empty")
    return np.full((2, 2), int(content), np.uint8), "odd" if int(content) % 2 else None


@pytest.fixture
def processes(monkeypatch):
    """Real ones, which get this process's path."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])


@pytest.fixture(autouse=True)
def _here(request):
    if "processes" not in request.fixturenames:
        request.getfixturevalue("in_this_process")


@pytest.fixture
def numbers(tmp_path):
    """Files in ten folders with three numbers each."""
    for number in WHOLE:
        path = tmp_path / f"in/{number // 3}/{number % 3}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(number))
    return tmp_path / "in"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The numbers and a cache with their array, not to be changed."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("msda_bench.data.rows.Worker", ThisProcess)
        local(folder / "cache", 1).rows("numbers", rows(numbers.__wrapped__(folder)))
    return folder / "in", folder / "cache"


@pytest.fixture
def cache(made, tmp_path):
    """A copy of the cache."""
    return shutil.copytree(made[1], tmp_path / "cache")


def rows(folder):
    paths = [(path, path.stat()) for path in sorted(folder.glob("*/*"))]
    listed = [Row(str(path.relative_to(folder)), str(path), 0, at.st_size, at.st_mtime_ns) for path, at in paths]
    return Rows(MAKE, tuple(listed), (2, 2))


def local(cache, processes):
    return LocalFiles(Folders(None, cache), "numbers", processes)


def parts(cache):
    return {path: path.stat().st_ino for path in cache.glob("derived/parts/*.part")}


def kept(cache):
    (path,) = cache.glob("derived/*.npy")
    return path


def is_whole(array):
    return np.array_equal(array, np.broadcast_to(WHOLE[:, None, None], (30, 2, 2)))


def removed_while(call):
    """The inodes of the files that a call removes: it uses finished parts, and removes them at the end."""
    seen = set()
    unlink = Path.unlink

    def noted(self, missing_ok=False):
        if self.exists():
            seen.add(self.stat().st_ino)
        unlink(self, missing_ok)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "unlink", noted)
        call()
    return seen


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_the_number_of_processes(made, numbers, tmp_path, caplog, monkeypatch, processes):
    """Worker processes may print anything."""
    monkeypatch.setattr("msda_bench.data.rows._PER_PART", 2)
    array = local(tmp_path / "two", 2).rows("numbers", rows(numbers))
    assert isinstance(array, np.memmap)
    assert not array.flags.writeable
    assert is_whole(array)
    assert kept(tmp_path / "two").read_bytes() == kept(made[1]).read_bytes()
    assert caplog.messages == ["odd: 15 files: 0/1, 1/0, 1/2 and 12 more"]
    assert not parts(tmp_path / "two")


def test_faults_are_counted_by_kind_and_nothing_is_computed_twice(numbers, tmp_path):
    """Nor are parts used whose bytes changed."""
    for name in ("0/0", "0/2", "4/1", "9/0"):
        (numbers / name).write_text("none")
    (numbers / "5/0").write_text("")
    (numbers / "5/1").write_text("much")
    with pytest.raises(DataError) as caught:
        local(tmp_path, 1).rows("numbers", rows(numbers))
    assert caught.value.lines == (
        f"empty: 1 file: 5/0; {REMEDY}",
        f"needs more memory than there is: 1 file: 5/1; {REMEDY}",
        f"no number: 4 files: 0/0, 0/2, 4/1 and 1 more; {REMEDY}",
    )
    whole = parts(tmp_path)
    assert len(whole) == 6
    damaged = min(whole)
    damaged.write_bytes(bytes(len(damaged.read_bytes())))
    for name, number in (("0/0", 0), ("0/2", 2), ("4/1", 13), ("5/0", 15), ("5/1", 16)):
        (numbers / name).write_text(str(number))
    (numbers / "9/0").unlink()
    arrays = []
    removed = removed_while(lambda: arrays.append(local(tmp_path, 1).rows("other numbers", rows(numbers))))
    assert arrays[0][:, 1, 1].tolist() == [number for number in range(30) if number != 27]
    assert set(whole.values()) - {whole[damaged]} <= removed


@pytest.mark.slow
def test_a_process_that_dies_or_a_bug_is_reported_and_the_rest_is_kept(numbers, tmp_path, processes):
    for content, words in (
        ("die", r"a process was killed by SIGKILL.* while decoding \(3/0 to 3/2\); run the same command again"),
        ("bug", f"{MAKE} failed while decoding 3/0: tests/data/test_rows.py:[0-9]+: FileNotFoundError"),
    ):
        (numbers / "3/0").write_text(content)
        assert re.match(words, only_line(local(tmp_path, 1).rows, "numbers", rows(numbers)))
        assert len(parts(tmp_path)) == 3


def test_without_processes_an_array_is_read_but_not_made(made, tmp_path):
    numbers, cache = made
    line = only_line(local(tmp_path / "cache", 0).rows, "numbers", rows(numbers))
    assert "not made yet, or damaged; `msda-bench run` makes it" in line
    assert not (tmp_path / "cache").exists()
    assert is_whole(local(cache, 0).rows("numbers", rows(numbers)))


def test_truncated_or_damaged_files_are_computed_again_and_leftovers_removed(made, cache, caplog):
    """Even if the time of modification was set back."""
    numbers, files = made[0], local(cache, 1)
    path = kept(cache)
    (left := path.with_name(f".{path.name}.00000000-1-{'0' * 32}.tmp")).touch()
    (old := path.parent / "parts/another's").mkdir()
    os.utime(old, (0, 0))  # a folder cannot be removed as a file
    whole = path.read_bytes()
    for damaged in (whole[:10] + b"((" + whole[12:], whole[:-1] + b"?"):
        at = path.stat()
        path.write_bytes(damaged)
        os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))
        assert is_whole(files.rows("numbers", rows(numbers)))
        assert path.read_bytes() == whole
        assert caplog.messages[-2] == f"{path}: its bytes have no right checksum; it is made again"
    assert not left.exists()
    assert old.exists()


def test_unchanged_bytes_are_read_only_after_a_copy(made, cache):
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        hashed = hashlib.file_digest
        patch.setattr(hashlib, "file_digest", lambda stream, kind: seen.append(stream) or hashed(stream, kind))
        for folder, count in ((made[1], 0), (cache, 1), (cache, 1)):
            local(folder, 0).rows("numbers", rows(made[0]))
            assert len(seen) == count


@pytest.mark.parametrize("place", ["", "derived/parts"])
def test_an_unwritable_folder_is_reported_in_one_line(numbers, tmp_path, place):
    (tmp_path / "cache" / place).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / "cache" / place).write_text("no folder")
    line = only_line(local(tmp_path / "cache", 1).rows, "numbers", rows(numbers))
    assert re.search("cannot be written: .*; free space, or set MSDA_BENCH_CACHE", line)


def test_a_file_that_became_shorter_or_vanished_since_it_was_listed_is_named(numbers, tmp_path):
    listed = replace(rows(numbers), rows=rows(numbers).rows[9:12])
    (numbers / "3/1").write_text("")
    (numbers / "3/2").unlink()
    with pytest.raises(DataError) as caught:
        local(tmp_path, 1).rows("numbers", listed)
    assert caught.value.lines == (
        f"not readable (No such file or directory): 1 file: 3/2; {REMEDY}",
        f"truncated since it was listed: 1 file: 3/1; {REMEDY}",
    )
    line = only_line(local(tmp_path, 1).rows, "numbers", replace(listed, together=16))
    assert line == f"{numbers}/3/1: truncated since it was listed"


def doubled(contents):
    return np.stack([2 * np.frombuffer(content, np.uint8) for content in contents])


def test_an_array_changed_in_memory_is_not_read_from_its_file(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 3), np.uint8))
    x = np.load(tmp_path / "x.npy", mmap_mode="c")
    x += 7
    made = local(tmp_path / "cache", 1).rows("numbers", Rows(f"{__name__}:doubled", x, (3,), {}, together=2))
    assert np.array_equal(made, np.full((4, 3), 14))
