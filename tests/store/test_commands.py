"""The stored commands of a result folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench.errors import StoreError
from msda_bench.store import Store
from msda_bench.store.check import merge

LIMIT = 1 << 20


def test_commands_are_one_line_each_kept_once_in_order_before_those_of_merged_folders(
    store: Store, tmp_path: Path
) -> None:
    assert store.commands() == ()
    other = Store.create(tmp_path / "other")
    for line in ("run b.yaml", "run 'a\nb\x1b[31m\udcff.yaml'", "run b.yaml"):
        store.add_commands([line])
    other.add_commands(["run c.yaml", "run b.yaml"])
    merge(store, other)
    assert store.commands() == ("run b.yaml", "run 'a b [31m .yaml'", "run c.yaml")


def link(path: Path) -> None:
    path.with_name("elsewhere").touch()
    path.symlink_to("elsewhere")


def huge(path: Path) -> None:
    path.touch()
    os.truncate(path, LIMIT + 1)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (Path.mkdir, ""),
        (link, "Too many levels of symbolic links"),
        (os.mkfifo, ""),
        (huge, "Larger than 1048576 bytes"),
    ],
    ids=["folder", "link", "pipe", "large"],
)
def test_what_is_no_file_of_at_most_1_mib_is_named_and_not_read(
    store: Store, tmp_path: Path, make: Callable[[Path], None], why: str
) -> None:
    make(store.folder / "commands.txt")
    with pytest.raises(StoreError, match=rf"commands\.txt: cannot be read: .*{why}"):
        store.add_commands(["run a.yaml"])
    into = Store.create(tmp_path / "into")
    (line,) = merge(into, store).lines
    assert f"commands.txt: cannot be read: {why}" in line
    assert not (into.folder / "commands.txt").exists()
    if make is link:
        assert (store.folder / "elsewhere").read_bytes() == b""
