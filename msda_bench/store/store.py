"""A result folder: the plan, the records, and the commands that made it.

results/<suite>/plan.json           what the suite asks for
                log/*.jsonl         a log for each process that trains, while a run lasts
                records.jsonl.gz    all earlier records, sealed
                arrays.zip          the arrays kept with records, sealed; while a run lasts, arrays/*.npz
                commands.txt        the commands that made it, one a line

The first result of a run counts: the sealed file comes before the logs, and logs come in the order of their names.
Later equal results are ignored; a different one is a conflict, which is reported and kept. Failures never block a
result.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msda_bench.atomic import (
    NO_LINK,
    NOT_THERE,
    make_folder,
    named,
    opened,
    owner_lives,
    read_file,
    refuse_other,
    stamp,
    write,
)
from msda_bench.errors import StoreError, printable
from msda_bench.store.arrays import FOLDER, Arrays, name_of, unpack
from msda_bench.store.codec import (
    BadRecordError,
    NewerRecordError,
    RecordSummary,
    decode,
    decode_classes,
    decode_summary,
    encode,
)
from msda_bench.store.log import LOGS, RECORD, SEALED, UNFINISHED, Line, Writer, read_log, read_sealed
from msda_bench.store.record import RESULTS, Record, same_result
from msda_bench.suite.plan import Plan
from msda_bench.suite.plan_file import PLAN_LIMIT, NewerPlanError, parse_plan, plan_to_json
from msda_bench.suite.run_spec import canonical_json

PLAN = "plan.json"
COMMANDS = "commands.txt"
_MOST_COMMANDS = 1 << 20  # bytes
_KEY = re.compile(rb'"key":"([0-9a-f]{64})"')
_MOST_LINES = 20
"""The maximum number of damaged lines that are named of a file."""
_NO_FILE = {errno.ELOOP: NO_LINK, errno.EINVAL: "is not a regular file"}
"""Errors of a file that are reported without stopping; the other files are still read."""


class DamagedPlanError(StoreError):
    """A plan.json that cannot be parsed; a run replaces it."""


class Store:
    """The records of one result folder. Any number of processes may use one folder at once.

    Args:
        folder: a result folder that exists; `Store.create` makes one.
        sealed: whether the sealed file is read; a worker, which trains what that lacks, leaves it.

    Attributes:
        folder: the result folder.
        arrays: the kept arrays.
        results: the results that count, by key, as of the last `refresh`.
        failures: the attempts at a cell without a result, oldest first, by key.
        damaged: the keys named in damaged lines of cells.
        faults: a line for each damaged place since `drain_warnings`.
        unread: the damaged files, except logs whose last line alone is unfinished.
        lines: the line of each record, by its digest.

    Raises:
        StoreError: it is not a result folder.
    """

    def __init__(self, folder: Path, *, sealed: bool = True) -> None:
        _check(folder)
        self.folder = folder
        self.arrays = Arrays(folder)
        self.results: dict[str, RecordSummary] = {}
        self.failures: dict[str, list[RecordSummary]] = {}
        self.damaged: set[str] = set()
        self.faults: list[str] = []
        self.unread: set[Path] = set()
        self.lines: dict[bytes, Line] = {}
        self._later: dict[str, list[RecordSummary]] = {}
        # For each file its stamp when it was read, and the place in a log where new lines will begin.
        self._known = {} if sealed else {folder / SEALED: (stamp(folder / SEALED), 0)}
        self._writer = Writer(folder)

    @classmethod
    def find(cls, folder: Path) -> Store | None:
        """The store in a folder; None if the folder does not exist or is empty; raises as `Store`."""
        with named(folder, "cannot be read"):
            is_folder = folder.is_dir() and not folder.is_symlink()
            if not os.path.lexists(folder) or (is_folder and not any(folder.iterdir())):
                return None
        return cls(folder)

    @classmethod
    def create(cls, folder: Path) -> Store:
        """The store in a folder, which is created if it does not exist; raises as `Store`."""
        store = cls.find(folder)
        if store is None:
            with named(folder, "cannot be made"):
                make_folder(folder)
                make_folder(folder / LOGS)
        return store or cls(folder)

    def publish(self, record: Record) -> Path:
        """Appends a record to the log of this process, after the arrays that come with it, and returns the log.

        A BadRecordError, as for NaN, or another StoreError, as for a full disk, leaves earlier records as they are.
        """
        data = encode(record)
        for kind, content in record.arrays.items():
            self.arrays.add(name_of(record.key, kind, record.saved[kind]), content)
        return self.append(data)

    def append(self, line: bytes) -> Path:
        """Appends a record's line; returns and raises as `publish`."""
        with named(self.folder / LOGS, "cannot be written, what was stored before is intact"):
            return self._writer.append(line)

    def refresh(self) -> Store:
        """Reads what is new, and returns itself; a StoreError if it cannot be read, or is of a newer msda-bench."""
        # A log that is gone was sealed by another process after its name was listed.
        while not all(map(self._has_read, self._files())):
            pass
        return self

    def _files(self) -> list[Path]:
        """The files of records: the sealed one, if there is one, and the logs."""
        sealed = self.folder / SEALED
        return [sealed, *self.logs()] if os.path.lexists(sealed) else self.logs()

    def logs(self) -> list[Path]:
        """The logs, in the order of their names; a StoreError if they cannot be listed."""
        logs = self.folder / LOGS
        with named(logs, "cannot be read"):
            paths = logs.iterdir() if logs.is_dir() else ()
            return sorted(path for path in paths if path.suffix == ".jsonl")

    def _has_read(self, path: Path) -> bool:
        """Reads what is new in a file; False if it is gone."""
        before, at = self._known.get(path, (None, 0))
        now = stamp(path)
        if now == before:
            return True
        faults: list[str] = []
        try:
            at = self._read_lines(path, at, faults)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno not in _NO_FILE:
                raise StoreError(f"{path}: cannot be read: {error.strerror or error}") from error
            faults.append(f"{path}: {_NO_FILE[error.errno]}")
        self._known[path] = now, at
        self.faults += faults[:_MOST_LINES]
        if len(faults) > _MOST_LINES:
            self.faults.append(f"{path}: {len(faults) - _MOST_LINES} more lines are damaged")
        return True

    def _read_lines(self, path: Path, at: int, faults: list[str]) -> int:
        """Adds the records of a file from a place on; returns the place after the last whole line."""
        lines = read_sealed(path) if path.name == SEALED else read_log(path, at)
        for line, data in lines:
            if line.fault != UNFINISHED:
                at += line.stop - line.start
            elif owner_lives(path.name):  # and may be writing it
                continue
            self._take(line, data, faults)
        if any(path.name == SEALED or not fault.endswith(UNFINISHED) for fault in faults):
            self.unread.add(path)
        return at

    def _take(self, line: Line, data: bytes, faults: list[str]) -> None:
        try:
            self._add(line, data)
        except BadRecordError as bad:
            torn = data[: self._add_joined(line, data)]
            keys = [key.decode() for key in _KEY.findall(torn)[-1:]]
            self.damaged.update(keys)
            of = f"; it is of run {keys[0]}" if keys else ""
            faults.append(f"{line.path}: {line.fault or f'a record {bad}{of}'}")

    def _add_joined(self, line: Line, data: bytes) -> int:
        """Adds the record at the end of a damaged line, as where a log was joined to one that was cut off.

        Returns:
            Where it begins; the length of the line if there is none.
        """
        start = data.rfind(RECORD, 1)
        if start > 0:
            with contextlib.suppress(BadRecordError):
                self._add(line._replace(start=line.start + start), data[start:])
                return start
        return len(data)

    def _add(self, line: Line, data: bytes) -> None:
        try:
            summary = decode_summary(data)
        except NewerRecordError as newer:
            raise StoreError(f"{line.path}: a record {newer}") from newer
        is_known = summary.digest in self.lines
        self.lines[summary.digest] = line
        if is_known:
            return
        if summary.status not in RESULTS:
            self.failures.setdefault(summary.key, []).append(summary)
        elif summary.key in self.results:
            self._later.setdefault(summary.key, []).append(summary)
        else:
            self.results[summary.key] = summary

    def line(self, stored: RecordSummary) -> bytes:
        """The bytes of a record that was read; a StoreError if its file was changed in place since."""
        line = self.lines[stored.digest]
        with named(line.path, "cannot be read"):
            data = line.read()
        if data[-67:-3] != stored.digest:
            raise StoreError(f"{line.path}: has changed while it was read; run the command again")
        return data

    def read(self, key: str) -> Record | None:
        """The record of `latest`; a StoreError if it does not match its schema."""
        stored = self.latest(key)
        return None if stored is None else self._whole(stored)

    def classes(self, key: str) -> dict[int, int]:
        """The number of test examples of each class, as the record of `latest` tells it; empty if it does not."""
        stored = self.latest(key)
        if stored is None:
            return {}
        with self._matching(stored):
            return decode_classes(self.line(stored))

    def latest(self, key: str) -> RecordSummary | None:
        """The result of a cell, or else its latest failure, as of the last `refresh`; None if there is neither."""
        return self.results.get(key) or next(reversed(self.failures.get(key, ())), None)

    def kept(self, record: Record, kind: str) -> dict[str, Any] | None:
        """The arrays of a kind kept with a record, None if there are none or left out; a StoreError if damaged."""
        if kind not in record.saved:
            return None
        name = name_of(record.key, kind, record.saved[kind])
        data = self.arrays.read(name)
        if data is None:
            self.arrays.refuse_unread()
            return None
        return unpack(data, f"{self.folder}: {name}")

    def conflicting(self, keys: Iterable[str]) -> dict[str, str]:
        """A line for each of these cells that has a result that differs from the one that counts, by key."""
        lines = {}
        for key in keys:
            others = self._distinct(key)[1:] if key in self._later else []
            if others:
                path = self.lines[others[0].digest].path
                lines[key] = f"{path}: another result for the same run, {key}"
        return lines

    def _distinct(self, key: str) -> list[RecordSummary]:
        """The results of a cell that differ in more than how they were made; the first counts."""
        distinct = [self.results[key]] if key in self.results else []
        for stored in self._later.get(key, ()):
            known = [self._whole(one) for one in distinct]
            if not any(same_result(record, self._whole(stored)) for record in known):
                distinct.append(stored)
        return distinct

    def _whole(self, stored: RecordSummary) -> Record:
        """The record of a summary; a StoreError, which names its file, if it does not match its schema."""
        with self._matching(stored):
            return decode(self.line(stored))

    @contextlib.contextmanager
    def _matching(self, stored: RecordSummary) -> Iterator[None]:
        try:
            yield
        except BadRecordError as bad:
            raise StoreError(f"{self.lines[stored.digest].path}: record {stored.key} {bad}") from bad

    def refuse_other_sealed(self) -> None:
        """Raises a StoreError if the sealed file is not the one that was read."""
        path = self.folder / SEALED
        read, _ = self._known.get(path, (NOT_THERE, 0))
        refuse_other(path, read)

    def in_order(self) -> Iterator[RecordSummary]:
        """All records: cells in the plan's order, then others; of each the attempts, then the distinct results."""
        planned: list[str] = []
        with contextlib.suppress(StoreError):
            planned = [cell.key for cell in self.read_plan().cells]
        for key in dict.fromkeys([*planned, *sorted(self.results.keys() | self.failures.keys())]):
            yield from self.failures.get(key, ())
            yield from self._distinct(key)

    def write_plan(self, plan: Plan) -> None:
        """Replaces the plan in one step; a StoreError, as where it is too large to be read, leaves the older one."""
        path = self.folder / PLAN
        data = canonical_json(plan_to_json(plan)).encode() + b"\n"
        parse_plan(data)  # a plan that cannot be parsed is not written
        with named(path, "cannot be written, what was stored before is intact"):
            write(path, data)

    def has_plan(self) -> bool:
        """Whether there is a plan, damaged or not."""
        return os.path.lexists(self.folder / PLAN)

    def read_plan(self) -> Plan:
        """The plan; a DamagedPlanError if it cannot be parsed, a StoreError if there is none, or a newer one."""
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
        """The commands that made the folder, each once, the first first; a StoreError if they take more than 1 MiB."""
        data = b""
        with named(self.folder / COMMANDS, "cannot be read"), contextlib.suppress(FileNotFoundError):
            data = read_file(self.folder / COMMANDS, _MOST_COMMANDS)
        return tuple(dict.fromkeys(data.decode(errors="replace").splitlines()))

    def add_commands(self, lines: Sequence[str]) -> None:
        """Adds those commands that are not listed; several machines may do this at once."""
        known = self.commands()
        shown = dict.fromkeys(printable(line, len(line)) for line in lines)
        added = [f"{line}\n" for line in shown if line not in known]
        if not added:
            return
        path = self.folder / COMMANDS
        with named(path, "cannot be written"), opened(path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as handle:
            os.write(handle, "".join(added).encode())
            os.fsync(handle)

    def drain_warnings(self) -> list[str]:
        """Returns the lines of `faults`, and clears it."""
        lines, self.faults = self.faults, []
        return lines


def _check(folder: Path) -> None:
    """Refuses a folder that is not a result folder, and links instead of folders that are written to."""
    with named(folder, "cannot be read"):  # such as a name that is too long
        links = [path for path in (folder, folder / LOGS, folder / FOLDER) if path.is_symlink()]
    for link in links:
        raise StoreError(f"{link}: {NO_LINK}; put the folder itself in its place")
    if not folder.is_dir():
        raise StoreError(f"{folder}: is {'not a folder' if folder.exists() else 'missing'}; name a result folder")
    if not any((folder / name).exists() for name in (PLAN, SEALED, LOGS)):
        inside = sorted(path.parent.name for path in folder.glob(f"*/{PLAN}"))
        hint = f"name one of those in it: {', '.join(inside[:5])}" if inside else f"it holds no {PLAN}"
        raise StoreError(f"{folder}: is not a result folder; {hint}")
