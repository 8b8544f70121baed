"""The checksum of a folder covers `sha256sum`'s lines, and is cached while no file changes."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from msda_bench.api import ByHand, File
from msda_bench.data import Folders, LocalFiles
from msda_bench.data.tree import tree_sha256
from tests.data.refusal import only_line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in (("b/1 2.jpg", b"x"), ("a/z.jpg", b"y"), ("B.txt", b"")):
        (tmp_path / "given/set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "given/set" / name).write_bytes(content)
    (tmp_path / "given/set/.DS_Store").write_bytes(b"hidden")
    return tmp_path / "given/set"


def test_a_broken_link_is_named(folder: Path, tmp_path: Path) -> None:
    (folder / "a/lost.jpg").symlink_to(tmp_path / "gone.jpg")
    line = only_line(
        LocalFiles(Folders(folder.parent, tmp_path / "cache")).path, File("set", "0" * 64, None, ByHand(""))
    )
    assert line == f"{folder}: not readable: {folder}/a/lost.jpg: No such file or directory; replace it"


def expected(folder: Path) -> str:
    names = ("B.txt", "a/z.jpg", "b/1 2.jpg")
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def test_the_checksum_covers_sha256sum_lines_without_hidden_files(folder: Path) -> None:
    assert tree_sha256(folder) == expected(folder)


def test_the_cached_checksum_is_used_until_a_file_changes(folder: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    assert tree_sha256(folder, memory) == expected(folder)
    (kept,) = memory.iterdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashlib, "file_digest", None)  # no file is read
        assert tree_sha256(folder, memory) == expected(folder)
    for damaged in ("damaged", "f" * 64, "f" + kept.read_text()[1:]):
        kept.write_text(damaged)
        assert tree_sha256(folder, memory) == expected(folder)
    at = (folder / "a/z.jpg").stat().st_mtime_ns
    (folder / "a/z.jpg").write_bytes(b"z")
    os.utime(folder / "a/z.jpg", ns=(at, at))
    assert tree_sha256(folder, memory) == expected(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="the command of the page is for GNU's tools")
def test_the_documented_command_gives_the_same_checksum(folder: Path) -> None:
    for name in ("back\\slash.jpg", "new\nline.jpg", "-dash.jpg", "a/sp ace.jpg", ".hidden/x.jpg"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    (command,) = re.findall(r"^    (find -L .*)$", Path("docs/images.md").read_text(), re.MULTILINE)
    done = subprocess.run(["/bin/sh", "-c", command], cwd=folder, check=True, capture_output=True, text=True)
    assert done.stdout.split()[0] == tree_sha256(folder)


def test_a_folder_is_a_file_that_the_user_places(folder: Path, tmp_path: Path) -> None:
    local = LocalFiles(Folders(tmp_path / "given", tmp_path / "cache"), "mine")
    given = File("set", None, None, ByHand("yours"))
    line = f"{folder}: not read, since no checksum was given; it has sha256 {expected(folder)}; if it is the right file"
    assert only_line(local.path, given).startswith(line)
    assert local.path(File("set", expected(folder), None, ByHand("yours"))) == folder
    assert "wrong checksum: sha256" in only_line(local.path, File("set", "0" * 64, None, ByHand("yours")))
