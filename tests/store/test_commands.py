"""The stored commands of a result folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench.errors import StoreError
from msda_bench.store.commands import COMMANDS, LIMIT, keep_command, keep_lines, read_commands
from msda_bench.store.merge import merge
from msda_bench.store.store import Store


def test_commands_are_kept_once_in_order_followed_by_those_of_merged_folders(tmp_path: Path) -> None:
    assert read_commands(tmp_path) == ()
    for suite in ("b.yaml", "a.yaml", "b.yaml"):
        keep_command(tmp_path, ["run", suite, "--only", "method=SRC|TAR"])
    kept = ("msda-bench run b.yaml --only 'method=SRC|TAR'", "msda-bench run a.yaml --only 'method=SRC|TAR'")
    assert read_commands(tmp_path) == kept
    keep_lines(tmp_path, ["msda-bench run c.yaml", kept[0]])
    assert read_commands(tmp_path) == (*kept, "msda-bench run c.yaml")


def test_a_command_stays_one_line(tmp_path: Path) -> None:
    keep_command(tmp_path, ["run", "a\nb\x1b[31m\udcff.yaml"])
    assert read_commands(tmp_path) == ("msda-bench run 'a?b?[31m?.yaml'",)
    assert (tmp_path / COMMANDS).read_bytes().count(b"\n") == 1


def link(path: Path) -> None:
    path.with_name("elsewhere").touch()
    path.symlink_to("elsewhere")


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 300 << 20)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (Path.mkdir, ""),
        (link, "Too many levels of symbolic links"),
        (os.mkfifo, ""),
        (huge, "Larger than 1048576 bytes"),
    ],
    ids=["folder", "link", "pipe", "300 MB"],
)
def test_links_and_pipes_are_named_and_not_read(tmp_path: Path, make: Callable[[Path], None], why: str) -> None:
    make(tmp_path / COMMANDS)
    with pytest.raises(StoreError, match=rf"commands\.txt: cannot be written: .*{why}"):
        keep_command(tmp_path, ["run", "a.yaml"])
    with pytest.raises(StoreError, match=rf"commands\.txt: cannot be read: .*{why}"):
        read_commands(tmp_path)
    if why.startswith("Too many"):
        assert (tmp_path / "elsewhere").read_bytes() == b""
    (tmp_path / "cells").mkdir()
    into, source = Store.create(tmp_path / "into"), Store(tmp_path)
    assert "commands.txt: cannot be read" in " ".join(merge(into, source).bad)
    assert not (tmp_path / "into" / COMMANDS).exists()


def test_the_file_never_exceeds_its_readable_size(tmp_path: Path) -> None:
    keep_lines(tmp_path, ["x" * (LIMIT - 1)])
    with pytest.raises(StoreError, match=r"cannot be written: it would have more than 1048576 bytes; move it away"):
        keep_lines(tmp_path, ["y"])
    assert read_commands(tmp_path) == ("x" * (LIMIT - 1),)


def test_commands_from_elsewhere_are_made_printable(tmp_path: Path) -> None:
    (tmp_path / COMMANDS).write_bytes(b"msda-bench \x1b]0;title\x07\r\n")
    assert read_commands(tmp_path) == ("msda-bench ?]0;title??",)
