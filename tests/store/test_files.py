"""Links, pipes and folders instead of files, and the names of temporary files."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from msda_bench import atomic
from msda_bench.errors import StoreError
from msda_bench.store import Store
from msda_bench.store.files import encode
from msda_bench.store.store import DamagedPlanError
from msda_bench.store.sweep import verify
from msda_bench.suite.plan import Plan
from tests.store.conftest import make_record


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    real = Store.create(outside)
    (tmp_path / "link").symlink_to(outside)
    for make in (Store, Store.create, Store.find):
        with pytest.raises(StoreError, match="symbolic link"):
            make(tmp_path / "link")
    record = make_record()
    (tmp_path / "elsewhere").mkdir()
    real.path(record.key).parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="symbolic link"):
        real.publish(record)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_no_file_is_read_or_written_through_a_link(store: Store, tmp_path: Path) -> None:
    record = make_record()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(encode(record))
    store.publish(make_record(seed=1))
    path = store.path(record.key)
    path.parent.mkdir(exist_ok=True)
    for link in (path, store.folder / "plan.json"):
        link.symlink_to(elsewhere)
    assert verify(store).bad[0] == f"{path}: is a symbolic link, which is not followed"
    assert store.read(record.key) is None
    assert store.damaged == [f"{path}: is a symbolic link, which is not followed; now {record.key}.bad-1"]
    with pytest.raises(DamagedPlanError, match=r"plan\.json: is a symbolic link, .*; run the suite again, which repl"):
        store.read_plan()
    store.write_plan(Plan("suite", (), ()))
    assert store.publish(record)
    assert not path.is_symlink()
    assert elsewhere.read_bytes() == encode(record)
    assert verify(store).bad == []


def test_a_lock_that_is_a_link_is_not_written_through(
    store: Store, without_links: Callable[[int], None], tmp_path: Path
) -> None:
    record = make_record()
    without_links(errno.EPERM)
    store.path(record.key).parent.mkdir()
    (store.path(record.key).parent / ".lock").symlink_to(tmp_path / "made")
    with pytest.raises(StoreError, match=r"cannot be written, .*: Too many levels of symbolic links"):
        store.publish(record)
    assert not (tmp_path / "made").exists()
    assert store.keys() == set()


def test_a_folder_of_cells_that_is_a_link_is_refused(store: Store, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (store.folder / "cells" / "ab").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="cells/ab: is a symbolic link, which is not followed"):
        Store(store.folder)


@pytest.mark.parametrize("where", ["record", "plan"])
def test_a_pipe_instead_of_a_file_is_named_without_waiting(store: Store, where: str) -> None:
    path = store.path(make_record().key) if where == "record" else store.folder / "plan.json"
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    with pytest.raises(StoreError, match="cannot be read: Not a regular file"):
        store.read(make_record().key) if where == "record" else store.read_plan()


def test_a_folder_instead_of_a_record_is_named(store: Store) -> None:
    record = make_record()
    store.path(record.key).mkdir(parents=True)
    with pytest.raises(StoreError, match="cannot be read"):
        store.publish(record)


def test_a_temporary_name_shows_whether_its_process_still_runs(tmp_path: Path) -> None:
    mine = atomic.temporary(tmp_path / "x.json").name
    assert atomic.is_temporary(mine)
    assert not atomic.is_abandoned(mine)
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    theirs = mine.replace(f"-{os.getpid()}-", f"-{int(gone.stdout)}-")
    assert atomic.is_abandoned(theirs)
    other = theirs.split(".")
    other[-2] = "00000000" + other[-2][8:]
    assert not atomic.is_abandoned(".".join(other))  # another machine's, of which we cannot know
