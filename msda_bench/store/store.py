"""A result folder: each record is published once, complete, and stays.

results/<suite>/plan.json
results/<suite>/commands.txt                                    the commands that made it, one a line
results/<suite>/cells/<first two digits>/<key>.json             the result of a cell, immutable
                                         <key>.failure-<n>.json  an attempt without a result
                                         <key>.conflict-<n>.json another result for the same cell
                                         <key>.bad-<n>           a damaged file in quarantine
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from msda_bench.atomic import (
    NO_LINK,
    append,
    make_folder,
    named,
    quarantine,
    read_file,
    write,
    write_new,
    write_numbered,
)
from msda_bench.errors import StoreError, printable
from msda_bench.store.files import (
    BadRecordError,
    RecordFile,
    arrays_path,
    encode,
    files_in,
    key_of_arrays,
    load,
    same_result,
    write_arrays,
)
from msda_bench.store.record import Record
from msda_bench.suite.cell import canonical_json
from msda_bench.suite.plan import PLAN_LIMIT, NewerPlanError, Plan, parse_plan, plan_to_json

PLAN = "plan.json"
CELLS = "cells"
COMMANDS = "commands.txt"
_MOST_COMMANDS = 1 << 20
"""The maximum size of commands.txt in bytes."""
_KEY = re.compile(r"[0-9a-f]{64}")
_ATTEMPTS = 5


class DamagedPlanError(StoreError):
    """A plan.json that cannot be parsed; a run replaces it."""


class Store:
    """The records of one result folder. Any number of processes may use one folder at once.

    Args:
        folder: a result folder that exists; `Store.create` makes one.
        repair: whether damaged records go to quarantine; otherwise they are only reported.

    Attributes:
        folder: the result folder.
        damaged: a line for each damaged record since `drain_warnings`; its cell counts as missing.
        conflicts: a line for each result since then that differs from the one stored first.

    Raises:
        StoreError: it is not a result folder.
    """

    def __init__(self, folder: Path, *, repair: bool = True) -> None:
        _check(folder)
        self.folder = folder
        self._repair = repair
        self.damaged: list[str] = []
        self.conflicts: list[str] = []

    @classmethod
    def find(cls, folder: Path, *, repair: bool = True) -> Store | None:
        """The store in a folder; None if the folder does not exist or is empty; raises as `Store`."""
        with named(folder, "cannot be read"):
            is_folder = folder.is_dir() and not folder.is_symlink()
            if not os.path.lexists(folder) or (is_folder and not any(folder.iterdir())):
                return None
        return cls(folder, repair=repair)

    @classmethod
    def create(cls, folder: Path) -> Store:
        """The store in a folder, which is created if it does not exist; raises as `Store`."""
        store = cls.find(folder)
        if store is None:
            with named(folder, "cannot be made"):
                make_folder(folder)
                make_folder(folder / CELLS)
        return store or cls(folder)

    def publish(self, record: Record) -> bool:
        """Stores a record: a result unless there is one, a failure always, next to it.

        False if another result was stored first. That one stays; if this one differs, it is kept as a conflict and
        reported in `conflicts`. Arrays that the stored result names and lacks are taken from one that has the same.

        Raises:
            BadRecordError: it holds NaN or an infinity.
            StoreError: it cannot be written (disk full, read-only); earlier records are intact.
        """
        if not record.is_result:
            self.publish_failure(record)
            return True
        path, data = self.path(record.key), encode(record)
        with self._making(path):
            for _ in range(_ATTEMPTS):
                if record.arrays and not path.exists():
                    write_arrays(record, path)
                if write_new(path, data):
                    return True
                stored = self.read(record.key)
                if stored is not None:
                    self._compare(stored, record)
                    self._supply(stored, record)
                    return False
        raise StoreError(f"{path}: is in the way and cannot be read; move it away")

    def publish_failure(self, record: Record) -> Path:
        """Stores a failure, which never blocks a result, and returns its file; raises as `publish`."""
        path, data = self.path(record.key), encode(record)
        with self._making(path):
            return write_numbered(path, "failure", data)

    def read(self, key: str, *, curves: bool = True) -> Record | None:
        """The result of a cell, optionally without its curves; None if there is none. A damaged one goes to quarantine.

        Raises:
            StoreError: it cannot be read, or a newer msda-bench wrote it.
        """
        path = self.path(key)
        try:
            return load(path, key, curves=curves)
        except BadRecordError as bad:
            self._quarantine(path, key, bad)
            return None

    def results(self, keys: Iterable[str], *, curves: bool = True) -> dict[str, Record]:
        """The results of the cells that have one, by key, in the order of `keys`."""
        records = ((key, self.read(key, curves=curves)) for key in dict.fromkeys(keys))
        return {key: record for key, record in records if record is not None}

    def failures(self, key: str) -> list[Record]:
        """The attempts at a cell without a result, oldest first; damaged ones are skipped."""
        return self._beside(key, "failure")

    def last_failure(self, key: str) -> Record | None:
        """The latest failure of a cell, or None."""
        return next(reversed(self.failures(key)), None)

    def scan(self) -> list[RecordFile]:
        """Every file named as a record, in no order."""
        cells = self.folder / CELLS
        with named(cells, "cannot be read"):
            if not cells.is_dir():
                return []
            with os.scandir(cells) as entries:
                folders = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
            return [file for folder in folders for file in files_in(folder)]

    def keys(self) -> set[str]:
        """The cells that have a result file."""
        return {file.key for file in self.scan() if file.kind == "result"}

    def kept(self, name: str) -> set[str]:
        """The cells with a file of arrays of this name, such as predictions."""
        with named(self.folder / CELLS, "cannot be read"):
            files = [key_of_arrays(path.name) for path in (self.folder / CELLS).glob("*/*.npz")]
        return {file[0] for file in files if file is not None and file[1] == name}

    def conflicting(self, keys: Iterable[str], files: Iterable[RecordFile] | None = None) -> list[str]:
        """A line for each result of these cells that conflicts with the one that counts."""
        wanted = set(keys)
        beside = [file for file in (self.scan() if files is None else files) if file.kind == "conflict"]
        return [f"{file.path}: another result for the same cell" for file in sorted(beside) if file.key in wanted]

    def path(self, key: str) -> Path:
        """The path of a cell's result, stored or not.

        Raises:
            StoreError: the key is not 64 hexadecimal digits.
        """
        if not _KEY.fullmatch(key):
            raise StoreError(f"{key[:80]!r} is not a cell's key: it needs 64 hexadecimal digits")
        return self.folder.joinpath(CELLS, key[:2], f"{key}.json")

    def write_plan(self, plan: Plan) -> None:
        """Stores the plan in one step, replacing an older one.

        Raises:
            StoreError: it cannot be written, or is too large to be read; the older one is intact.
        """
        path, data = self.folder / PLAN, canonical_json(plan_to_json(plan)).encode() + b"\n"
        parse_plan(data)  # a plan that cannot be parsed is not written
        with named(path, "cannot be written, what was stored before is intact"):
            write(path, data)

    def has_plan(self) -> bool:
        """Whether there is a plan, damaged or not."""
        return os.path.lexists(self.folder / PLAN)

    def read_plan(self) -> Plan:
        """The plan.

        Raises:
            DamagedPlanError: it cannot be parsed.
            StoreError: there is none, or a newer msda-bench wrote it.
        """
        path = self.folder / PLAN
        try:
            return parse_plan(read_file(path, PLAN_LIMIT))
        except NewerPlanError as newer:
            raise StoreError(f"{path}: {newer}") from newer
        except FileNotFoundError:
            raise StoreError(f"{path}: is missing; run the suite again, which writes it") from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise DamagedPlanError(f"{path}: {NO_LINK}; run the suite again, which replaces it") from None
            raise StoreError(f"{path}: cannot be read: {error.strerror or error}") from error
        except StoreError as error:
            raise DamagedPlanError(f"{path}: is damaged ({error}); run the suite again, which replaces it") from error

    def commands(self) -> tuple[str, ...]:
        """The commands that made the folder, each once, in the order in which they were first given.

        Raises:
            StoreError: they cannot be read, take more than 1 MiB, or are no regular file.
        """
        with named(self.folder / COMMANDS, "cannot be read"):
            return tuple(dict.fromkeys(self._commands().decode(errors="replace").splitlines()))

    def add_commands(self, lines: Sequence[str]) -> None:
        """Adds those commands that are not listed; several machines may do this at once.

        Raises:
            StoreError: they cannot be read or written.
        """
        path = self.folder / COMMANDS
        with named(path, "cannot be written"):
            before = self._commands()
            known = before.decode(errors="replace").splitlines()
            added = [line for line in dict.fromkeys(printable(line, len(line)) for line in lines) if line not in known]
            data = "".join(f"{line}\n" for line in added).encode()
            if len(before) + len(data) > _MOST_COMMANDS:
                raise OSError(errno.EFBIG, f"it would have more than {_MOST_COMMANDS} bytes; move it away")
            if added:
                append(path, data)

    def drain_warnings(self) -> list[str]:
        """Returns the lines of `damaged` and `conflicts`, and clears both."""
        lines = [*self.damaged, *self.conflicts]
        self.damaged.clear()
        self.conflicts.clear()
        return lines

    def _commands(self) -> bytes:
        try:
            return read_file(self.folder / COMMANDS, _MOST_COMMANDS)
        except FileNotFoundError:
            return b""

    @contextlib.contextmanager
    def _making(self, path: Path) -> Iterator[None]:
        with named(path, "cannot be written, what was stored before is intact"):
            make_folder(path.parent.parent)
            make_folder(path.parent)
            yield

    def _compare(self, stored: Record, record: Record) -> None:
        if same_result(stored, record):
            return
        if not any(same_result(known, record) for known in self._beside(record.key, "conflict")):
            alone = replace(record, saved={}, arrays={})  # arrays are kept with the result that counts
            write_numbered(self.path(record.key), "conflict", encode(alone))
        self.conflicts.append(f"{self.path(record.key)}: another result for the same cell is kept beside it")

    def _supply(self, stored: Record, record: Record) -> None:
        path = self.path(record.key)
        lacking = {
            name: data
            for name, data in record.arrays.items()
            if record.saved[name] == stored.saved.get(name) and not arrays_path(path, name, record.saved[name]).exists()
        }
        write_arrays(replace(record, arrays=lacking), path)

    def _quarantine(self, path: Path, key: str, bad: BadRecordError) -> None:
        outcome = ""
        if self._repair:
            try:
                moved = quarantine(path, lambda taken: _is_intact(taken, key))
            except OSError as error:
                outcome = f"; it cannot be moved: {error.strerror or error}"
            else:
                if moved is None:
                    return
                outcome = f"; now {moved.name}"
        self.damaged.append(f"{path}: {bad}{outcome}")

    def _beside(self, key: str, kind: str) -> list[Record]:
        folder = self.path(key).parent
        with named(folder, "cannot be read"):
            files = files_in(str(folder), f"{key}.{kind}-") if folder.is_dir() else []
        records: list[Record | None] = []
        for file in sorted(files, key=RecordFile.order):
            with contextlib.suppress(BadRecordError):
                records.append(load(file.path, key))
        return [record for record in records if record is not None]


def _is_intact(path: Path, key: str) -> bool:
    try:
        load(path, key)
    except BadRecordError:
        return False
    return True


def _check(folder: Path) -> None:
    """Refuses a folder that is not a result folder, and links instead of folders that are written to."""
    with named(folder, "cannot be read"):  # such as a name that is too long
        links = [path for path in (folder, folder / CELLS) if path.is_symlink()]
    if not links and (folder / CELLS).is_dir():
        with named(folder / CELLS, "cannot be read"), os.scandir(folder / CELLS) as entries:
            links = [Path(entry.path) for entry in entries if entry.is_symlink()]
    for link in links:
        raise StoreError(f"{link}: {NO_LINK}; put the folder itself in its place")
    if not folder.is_dir():
        raise StoreError(f"{folder}: is {'not a folder' if folder.exists() else 'missing'}; name a result folder")
    if not (folder / CELLS).is_dir() and not (folder / PLAN).is_file():
        inside = sorted(path.parent.name for path in folder.glob(f"*/{PLAN}"))
        hint = f"name one of those in it: {', '.join(inside[:5])}" if inside else f"it holds no {PLAN}"
        raise StoreError(f"{folder}: is not a result folder; {hint}")
