"""Files of a dataset: where they are looked for, whether their bytes are right, and arrays kept beside them."""

import errno
import hashlib
import itertools
import logging
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from msda_bench.api import ByHand, File, Pip, Url
from msda_bench.data import Folders, LocalFiles, absent, folders
from msda_bench.data.checksums import present, tree_sha256
from msda_bench.errors import DataError
from tests.data.conftest import make_file, only_line
from tests.store.faulty import faults


def put(folder, content):
    path = folder / "toy/data.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def md5(content):
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def test_the_environment_names_the_folders_the_given_one_first(tmp_path, monkeypatch):
    def named(data="", cache=""):
        monkeypatch.setenv("MSDA_BENCH_DATA", str(data))
        monkeypatch.setenv("MSDA_BENCH_CACHE", str(cache))
        return folders()

    file = make_file(b"")
    where = named(tmp_path, tmp_path / "c")
    assert where.candidates(file) == (tmp_path / "toy/data.bin", tmp_path / "c/toy/data.bin")
    where = named()
    assert (where.given, where.cache.name) == (None, "msda-bench")
    assert where.candidates(file) == (where.cached(file),)
    monkeypatch.chdir(tmp_path)
    assert named(".", "c") == Folders(tmp_path, tmp_path / "c")
    assert named(cache="~nobody-of-this-name/c").cache == tmp_path / "~nobody-of-this-name/c"
    with pytest.raises(DataError, match=r"^MSDA_BENCH_DATA: .*nowhere is not a folder; .*unset it$"):
        named(tmp_path / "nowhere")


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "toy/../../x", "", ".", "C:/x", "a\\b", "a\0b"])
def test_a_file_outside_the_folder_is_refused(tmp_path, path):
    file = File(path, "ab" * 32, 1, Url(("https://example.org/x",)))
    assert "leads out of the data folder" in only_line(LocalFiles(Folders(None, tmp_path)).path, file)


RIGHT = {"sha256": hashlib.sha256(b"right").hexdigest(), "size": 5}
SQUEEZED = ((hashlib.sha256(b"squeezed").hexdigest(), 8),)
PREFIX = {"sha256": RIGHT["sha256"][:8], "size": None, "origin": Url(())}


@pytest.mark.parametrize(
    ("declared", "content", "fault", "seems_here"),
    [
        (RIGHT, b"right", None, True),
        (RIGHT, b"rig", "truncated: 3 bytes, expected 5", False),
        (RIGHT, b"right on", "too long: 8 bytes, expected 5", False),
        (RIGHT, b"wrong", "wrong checksum: sha256 8810ad581e59..., expected ", True),
        (RIGHT | {"same": SQUEEZED}, b"right", None, True),
        (RIGHT | {"same": SQUEEZED}, b"squeezed", None, True),
        (RIGHT | {"same": SQUEEZED}, b"squeezes", "wrong checksum: sha256 375f", True),
        (RIGHT | {"same": SQUEEZED}, b"rig", "truncated: 3 bytes, expected 5", False),
        (RIGHT | {"md5": md5(b"wrong")}, b"wrong", "wrong checksum: sha256", True),
        ({"md5": md5(b"right")}, b"right", None, True),
        ({"md5": md5(b"right")}, b"wrong", "wrong checksum: md5 2bda2998d9b0..., expected 7c4f29407893...", True),
        (PREFIX, b"right", None, True),
        (PREFIX, b"wrong", f"wrong checksum: sha256 8810ad581e59..., expected {RIGHT['sha256'][:8]}...", True),
        ({}, b"right", f"not read, since no checksum was given; it has sha256 {RIGHT['sha256']}", True),
    ],
)  # fmt: skip
def test_only_right_bytes_are_used_and_faults_are_named(where, declared, content, fault, seems_here):
    file = File(**{"path": "toy/data.bin", "sha256": None, "size": None, "origin": ByHand("yours")} | declared)
    assert not present(where.given / "toy/data.bin", file)
    path = put(where.given, content)
    assert present(path, file) == seems_here
    if fault is None:
        assert LocalFiles(where).path(file) == path
    else:
        assert only_line(LocalFiles(where).path, file).startswith(f"{path}: {fault}")


@pytest.mark.parametrize(
    ("sha256", "origin", "words"),
    [
        (None, Url(("https://example.org/f",)), "f: a file needs a sha256"),
        (None, Pip("toy", "1.0"), "f: a file needs a sha256"),
        ("0" * 7, Url(()), "f: its sha256 has 7 digits; 8 are needed"),
        ("0" * 63, Pip("net", "1.0"), "63 digits; 64 are needed"),  # pip asks for all of them
    ],
)
def test_a_file_to_be_fetched_needs_a_checksum(sha256, origin, words):
    with pytest.raises(ValueError, match=words):
        File("f", sha256, 1, origin, md5="0" * 32 if isinstance(origin, Pip) else None)


def test_the_first_right_copy_is_used_and_its_bytes_are_read_once(where):
    file = make_file(b"right")
    assert absent([file], where) == [file]
    cached = put(where.cache, b"right")
    files = LocalFiles(where)
    assert files.path(file) == cached
    given = put(where.given, b"wrong")
    assert LocalFiles(where).path(file) == cached
    put(where.given, b"right")
    assert LocalFiles(where).path(file) == given
    assert absent([file], where) == []
    given.unlink()
    cached.write_bytes(b"wrong")
    assert files.path(file) == cached
    assert "wrong checksum" in only_line(LocalFiles(where).path, file)


def test_a_missing_or_wrong_file_names_the_remedies(where):
    files = LocalFiles(where, "toy")
    by_hand = File("toy/data.bin", None, None, ByHand("published by them"), md5="ab" * 16)
    mine = File("toy/data.bin", None, None, ByHand("made by you"))
    place = "place it yourself below a folder named by MSDA_BENCH_DATA"
    line = only_line(files.path, make_file(b"right"))
    assert line.startswith("toy/data.bin: not in MSDA_BENCH_DATA (")
    assert "msda-bench data fetch toy" in line
    assert "--fetch" in line
    assert only_line(files.path, by_hand).endswith(f": published by them; {place} (md5 {'ab' * 16})")
    assert only_line(files.path, mine).endswith(f": made by you; {place}, and give its sha256 in the suite")
    path = put(where.given, b"wrong")
    assert "msda-bench data fetch toy" in only_line(files.path, make_file(b"right"))
    assert only_line(files.path, by_hand).endswith("; replace it")
    assert only_line(files.path, mine).endswith("; if it is the right file, give its checksum in the suite")
    assert files.path(replace(mine, sha256=hashlib.sha256(b"wrong").hexdigest())) == path
    path.unlink()
    path.mkdir()
    assert ": not readable" in only_line(files.path, make_file(b"x" * path.stat().st_size))


@pytest.fixture
def folder(where):
    for name, content in (("b/1 2.jpg", b"x"), ("a/z.jpg", b"y"), ("B.txt", b"")):
        (where.given / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (where.given / "set" / name).write_bytes(content)
    (where.given / "set/.DS_Store").write_bytes(b"hidden")
    return where.given / "set"


def expected(folder):
    names = ("B.txt", "a/z.jpg", "b/1 2.jpg")
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def test_a_folder_is_a_file_that_the_user_places(folder, where):
    """Its checksum covers the lines of `sha256sum`, without hidden files."""
    files = LocalFiles(where, "mine")
    given = File("set", None, None, ByHand("yours"))
    line = f"{folder}: not read, since no checksum was given; it has sha256 {expected(folder)}; if it is the right file"
    assert only_line(files.path, given).startswith(line)
    assert files.path(replace(given, sha256=expected(folder))) == folder
    assert "wrong checksum: sha256" in only_line(files.path, replace(given, sha256="0" * 64))
    (folder / "a/lost.jpg").symlink_to("gone.jpg")
    line = f"{folder}: not readable: {folder}/a/lost.jpg: No such file or directory; replace it"
    assert only_line(files.path, replace(given, sha256="0" * 64)) == line


def test_the_cached_checksum_of_a_folder_is_used_until_a_file_changes(folder, tmp_path):
    memory = tmp_path / "memory"
    assert tree_sha256(folder, memory) == expected(folder)
    (kept,) = memory.iterdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashlib, "file_digest", None)  # no file is read
        assert tree_sha256(folder, memory) == expected(folder)
    for damaged in ("damaged", "f" * 64, "f" + kept.read_text()[1:], kept.read_text()[:-1] + "?"):
        kept.write_text(damaged)
        assert tree_sha256(folder, memory) == expected(folder)
    at = (folder / "a/z.jpg").stat().st_mtime_ns
    (folder / "a/z.jpg").write_bytes(b"z")
    os.utime(folder / "a/z.jpg", ns=(at, at))
    assert tree_sha256(folder, memory) == expected(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="the command of the page is for GNU's tools")
def test_the_documented_command_gives_the_same_checksum(folder):
    for name in ("back\\slash.jpg", "new\nline.jpg", "-dash.jpg", "a/sp ace.jpg", ".hidden/x.jpg"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    (command,) = re.findall(r"^    (find -L .*)$", Path("docs/images.md").read_text(), re.MULTILINE)
    done = subprocess.run(["/bin/sh", "-c", command], cwd=folder, check=True, capture_output=True, text=True)
    assert done.stdout.split()[0] == tree_sha256(folder)


MADE = {"a": np.arange(5, dtype=np.int32), "b": np.array([[0.5]], np.float32)}


def test_derived_arrays_are_computed_once_for_each_name_and_again_when_damaged(where):
    """Names that look alike once cleaned are kept apart."""
    make = Mock(return_value=MADE)

    def made(times):
        for name in ("a/b", "a b", "../a-b", "é"):
            np.testing.assert_equal(LocalFiles(where).derived(name, make), MADE)
        assert make.call_count == times

    made(4)
    made(4)
    one, other, third, _ = (where.cache / "derived").iterdir()
    one.write_bytes(one.read_bytes()[:-7])
    other.write_bytes(b"")
    flipped = bytearray(third.read_bytes())
    flipped[90] ^= 1
    third.write_bytes(flipped)
    made(7)
    made(7)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_cache_that_cannot_be_written_costs_time_and_a_warning_only(tmp_path, caplog, code):
    for at in itertools.count():
        files, make = LocalFiles(Folders(None, tmp_path / str(at))), Mock(return_value=MADE)
        caplog.clear()
        with faults(code, at) as faulty, caplog.at_level(logging.WARNING):
            np.testing.assert_equal(files.derived("toy", make), MADE)
        np.testing.assert_equal(files.derived("toy", make), MADE)
        if faulty.refused is None:
            break
        (line,) = caplog.messages
        assert line.endswith("; they are made again each time")
    assert {"open", "write", "fsync", "replace"} <= set(faulty.calls)


def test_what_cannot_be_kept_is_refused_and_a_failing_computation_leaves_nothing(where):
    def fails():
        raise DataError("line 3")

    with pytest.raises(ValueError, match="must not hold Python objects"):
        LocalFiles(where).derived("toy", lambda: {"a": np.array([None])})
    with pytest.raises(DataError, match="line 3"):
        LocalFiles(where).derived("toy", fails)
    assert not where.cache.exists()
