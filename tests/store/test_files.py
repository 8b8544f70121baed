"""Links, pipes and folders instead of files, and the names of temporary files."""

from __future__ import annotations

import errno
import os
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


def test_links_out_of_the_folder_are_refused(tmp_path: Path, without_links: Callable[[int], None]) -> None:
    outside, record = tmp_path / "outside", make_record()
    real = Store.create(outside)
    (tmp_path / "link").symlink_to(outside)
    for make in (Store, Store.create, Store.find):
        with pytest.raises(StoreError, match="symbolic link"):
            make(tmp_path / "link")
    without_links(errno.EPERM)
    folder = real.path(record.key).parent
    folder.mkdir()
    (folder / ".lock").symlink_to(tmp_path / "made")
    with pytest.raises(StoreError, match=r"cannot be written, .*: Too many levels of symbolic links"):
        real.publish(record)
    assert not (tmp_path / "made").exists()
    assert real.keys() == set()
    (folder / ".lock").unlink()
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="symbolic link"):
        real.publish(record)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    with pytest.raises(StoreError, match=f"cells/{folder.name}: is a symbolic link, which is not followed"):
        Store(outside)


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


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_folder_instead_of_a_file_is_named_without_waiting(
    store: Store, make: Callable[[Path], None]
) -> None:
    record = make_record()
    store.path(record.key).parent.mkdir()
    for path in (store.path(record.key), store.folder / "plan.json"):
        make(path)
    with pytest.raises(StoreError, match="cannot be read: "):
        store.read(record.key)
    with pytest.raises(StoreError, match="cannot be read: "):
        store.publish(record)
    with pytest.raises(StoreError, match=r"plan\.json: cannot be read: "):
        store.read_plan()


def test_a_temporary_name_shows_whether_its_process_still_runs(tmp_path: Path) -> None:
    mine = atomic.temporary(tmp_path / "x.json").name
    assert atomic.is_temporary(mine)
    assert not atomic.is_abandoned(mine)
    gone = mine.replace(f"-{os.getpid()}-", f"-{(1 << 22) + 1}-")  # more than a process may have
    assert atomic.is_abandoned(gone)
    host = gone.split(".")[-2][:8]
    assert not atomic.is_abandoned(gone.replace(host, "00000000"))  # another machine's, of which we cannot know


def test_bytes_appear_only_after_a_successful_block(tmp_path: Path) -> None:
    def interrupted(path: Path) -> None:
        with atomic.written(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    path = tmp_path / "deep" / "f"
    with atomic.written(path) as stream:
        stream.write(b"new")
        assert not path.exists()
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert path.read_bytes() == b"new"
    assert [file.name for file in path.parent.iterdir()] == ["f"]
