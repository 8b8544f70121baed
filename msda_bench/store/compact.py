"""Compacts a result folder: one file of all records, one of all arrays, and no logs (`msda-bench store seal`)."""

from __future__ import annotations

import contextlib
from pathlib import Path

from msda_bench.atomic import blocked, keep_aside, leftovers, named, owner_lives, stamp, written
from msda_bench.errors import StoreError
from msda_bench.store.log import LOGS, SEALED, members, remove
from msda_bench.store.store import Store


def compact(store: Store) -> list[str]:
    """Writes all records, in the plan's order, into one file and the arrays into another, and removes the logs.

    If it is killed at any step, or refused, the folder holds the same records, some of them twice. Others may write
    meanwhile: a log that has grown since it was read stays, and its writer begins another. A damaged file is kept
    beside the new one, under another name.

    Returns:
        A line for each damaged record, or file of arrays, that was left out.
    """
    logs = store.folder / LOGS
    if not store.arrays.loose() and not logs.is_dir():
        return []
    path = store.folder / SEALED
    with named(path, "cannot be written, what was stored before is intact"):
        fresh = type(store)(store.folder)
        with written(path, fresh.refuse_other_sealed) as stream:
            _refuse_other_writer(path, Path(stream.name).name)
            logs_now = [log for log in store.logs() if log.is_file() and not log.is_symlink()]
            sizes = {log: stamp(log)[1] for log in logs_now}
            dropped = fresh.refresh().drain_warnings()
            dropped += [keep_aside(damaged, store.folder) for damaged in sorted(fresh.unread)]
            dropped += store.arrays.compact()
            stream.writelines(members(fresh.line(stored) for stored in fresh.in_order()))
        for log, size in sizes.items():
            remove(log, size)
        with contextlib.suppress(OSError):
            logs.rmdir()
    return dropped


def _refuse_other_writer(path: Path, own: str) -> None:
    """Raises a StoreError if another process is writing the sealed file.

    If two wrote from different readings, the second would replace the first one's file. Each begins its file before it
    reads and sees the other's, so that at most one goes on.
    """
    for part in leftovers(path):
        if part.name != own and owner_lives(part.name) is not False:
            raise StoreError(f"{path}: is being written{blocked(part)}")
