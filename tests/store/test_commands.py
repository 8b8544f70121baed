"""The stored commands of a result folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench.errors import StoreError
from msda_bench.store import Store
from msda_bench.store.sweep import merge

LIMIT = 1 << 20


def test_commands_are_kept_once_in_order_followed_by_those_of_merged_folders(store: Store, tmp_path: Path) -> None:
    assert store.commands() == ()
    other = Store.create(tmp_path / "other")
    for line in ("run b.yaml", "run a.yaml", "run b.yaml"):
        store.add_commands([line])
    other.add_commands(["run c.yaml", "run b.yaml"])
    merge(store, other)
    assert store.commands() == ("run b.yaml", "run a.yaml", "run c.yaml")


def test_a_command_stays_one_printable_line(store: Store) -> None:
    store.add_commands(["run 'a\nb\x1b[31m\udcff.yaml'"])
    assert store.commands() == ("run 'a b [31m .yaml'",)


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
def test_links_and_pipes_are_named_and_not_read(
    store: Store, tmp_path: Path, make: Callable[[Path], None], why: str
) -> None:
    make(store.folder / "commands.txt")
    with pytest.raises(StoreError, match=rf"commands\.txt: cannot be written: .*{why}"):
        store.add_commands(["run a.yaml"])
    with pytest.raises(StoreError, match=rf"commands\.txt: cannot be read: .*{why}"):
        store.commands()
    if why.startswith("Too many"):
        assert (store.folder / "elsewhere").read_bytes() == b""
    into = Store.create(tmp_path / "into")
    assert "commands.txt: cannot be read" in " ".join(merge(into, store).bad)
    assert not (into.folder / "commands.txt").exists()


def test_the_file_never_exceeds_its_readable_size(store: Store) -> None:
    store.add_commands(["x" * (LIMIT - 1)])
    with pytest.raises(StoreError, match=r"cannot be written: it would have more than 1048576 bytes; move it away"):
        store.add_commands(["y"])
    assert store.commands() == ("x" * (LIMIT - 1),)
