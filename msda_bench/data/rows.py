"""Makes a large array once, in several processes; it is kept in a file and mapped into memory.

Finished work survives a kill: each part of the array is a file until all are done. The sources of its rows identify a
part, so a later run makes only missing parts, even if other files were added or repaired in between. Parts end with
their sha256, and that of the array is kept beside it.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import hashlib
import io
import itertools
import json
import logging
import math
import mmap
import pkgutil
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from msda_bench.api import Array, Row, Rows
from msda_bench.atomic import REMEDY, leftovers, written
from msda_bench.data.checksums import is_intact, seal, seal_of
from msda_bench.errors import LONGEST_LINE, BenchError, DataError, PluginError, printable
from msda_bench.plugin_errors import package, plugin_errors
from msda_bench.processes import BrokenProcessPool, Worker

_PER_PART = 256
_KEPT = 30 * 24 * 3600
"""Seconds after which the parts of an unfinished array are removed."""
_SHOWN = 3
"""Names shown in a line on many rows."""
_log = logging.getLogger(__name__)
_fields = attrgetter("name", "path", "offset", "size", "stamp")
"""The fields of a `Row`; `dataclasses.astuple` copies each value, which takes far longer."""


def rows_in(path: Path, rows: Rows, processes: int) -> Array:
    """The array in the file, made first if it is missing; other processes that need it wait for it.

    A file that is truncated or whose bytes changed is made again, with a warning; see `is_intact` for when its bytes
    are read. Another warning names each kind of repair of rows.

    Args:
        path: its file; the name must identify all that the array depends on.
        rows: its rows.
        processes: how many make it; the bytes do not depend on it. With 0 it must exist.

    Returns:
        (n, *shape), read-only, mapped into memory, which it takes only when read and the system may reclaim.

    Raises:
        DataError: a line for each kind of fault in the rows, with their number; a process died; the cache cannot be
            written; or the array does not exist and no process may make it.
    """
    array = _mapped(path, rows)
    if array is None and not processes:
        raise DataError(f"{path}: not made yet, or damaged; `msda-bench run` makes it")
    if array is None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(path):
                array = _mapped(path, rows)
                if array is None:
                    if path.exists():
                        _log.warning("%s: its bytes have no right checksum; it is made again", path)
                    _make(path, rows, processes)
                    array = _mapped(path, rows)
        except OSError as error:
            raise DataError(f"{path.parent}: cannot be written: {error.strerror or error}; {REMEDY}") from error
    if array is None:
        raise DataError(f"{path}: vanished while it was made; run the same command again")
    return array


def remove_if_damaged(path: Path) -> bool:
    """Reads the file of an array; removes it if its bytes are not those that were written, so that it is made again.

    Raises:
        OSError: it is damaged and cannot be removed.
    """
    if is_intact(path, read=True):
        return False
    with _locked(path):
        if is_intact(path, read=True):  # another process has just made it
            return False
        path.unlink()
        seal_of(path).unlink(missing_ok=True)
    return True


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _mapped(path: Path, rows: Rows) -> Array | None:
    if not len(rows.rows):
        return np.empty((0, *rows.shape), rows.dtype)
    if not is_intact(path):
        return None
    try:
        array: Array = np.lib.format.open_memmap(path, mode="r")
    except Exception:  # noqa: BLE001 - just removed, or of another layout, where numpy may raise anything
        return None
    if array.shape != (len(rows.rows), *rows.shape) or array.dtype != rows.dtype:
        return None
    return array


@dataclass(frozen=True)
class Part:
    """Some rows of an array, and the file that they become, followed by their sha256."""

    path: Path
    rows: Rows

    def pieces(self, stream: IO[bytes]) -> Iterator[bytes]:
        """The bytes of its rows in its file, some at a time."""
        rows = self.rows
        numbers = len(rows.rows) * math.prod(rows.shape)
        size = numbers * np.dtype(rows.dtype).itemsize
        while size and (piece := stream.read(min(size, 1 << 20))):
            size -= len(piece)
            yield piece

    def is_whole(self) -> bool:
        """Whether its file is there, with the bytes that were written."""
        digest = hashlib.sha256()
        try:
            with self.path.open("rb") as stream:
                for piece in self.pieces(stream):
                    digest.update(piece)
                return stream.read() == digest.digest()
        except OSError:
            return False


@dataclass
class Made:
    """Words and a row's name for each note and each fault of a part."""

    notes: list[tuple[str, str]] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)


def _make(path: Path, rows: Rows, processes: int) -> None:
    folder = path.parent / "parts"
    listed, copy = _listed(rows.rows, folder / f"{path.stem}.rows")
    parts = list(_parts(folder, replace(rows, rows=listed)))
    missing = [part for part in parts if not part.is_whole()]
    useful = math.ceil(len(listed) / _PER_PART)  # to start a process takes as long as many rows
    processes = min(processes, rows.processes or processes, len(missing), useful)
    notes: list[tuple[str, str]] = []
    faults: list[tuple[str, str]] = []
    for made in _made(missing, processes, len(listed)):
        notes += made.notes
        faults += made.faults
    for line in _lines(notes):
        _log.warning("%s", printable(line, LONGEST_LINE))
    if faults:
        remedy = "replace or remove them, then run the same command again: only what is missing is made"
        raise DataError(*(f"{line}; {remedy}" for line in _lines(faults)))
    for left in leftovers(path):  # of a killed process, since this one holds the lock
        left.unlink(missing_ok=True)
    digest = hashlib.sha256()
    with written(path) as stream:
        for piece in _contents(rows, parts):
            digest.update(piece)
            stream.write(piece)
    seal(path, digest.hexdigest())
    made_from = [part.path for part in parts]
    for done in made_from + copy + _abandoned(folder):
        with contextlib.suppress(OSError):  # such as a file of another user; the array is complete
            done.unlink()


def _abandoned(folder: Path) -> list[Path]:
    """Parts of arrays that were begun long ago and never finished."""
    oldest = time.time() - _KEPT
    with contextlib.suppress(OSError):
        return [path for path in folder.iterdir() if path.stat().st_mtime < oldest]
    return []


def _listed(rows: tuple[Row, ...] | Array, path: Path) -> tuple[tuple[Row, ...], list[Path]]:
    """Rows of an array as parts of the file from which it is mapped; one in memory is written to `path` temporarily."""
    if isinstance(rows, tuple):
        return rows, []
    if isinstance(rows, np.memmap) and _is_as_in_its_file(rows):
        return _places(rows, str(rows.filename), rows.offset), []
    with written(path) as stream:
        stream.write(np.ascontiguousarray(rows).data)
    return _places(rows, str(path), 0), [path]


def _is_as_in_its_file(rows: np.memmap[Any, Any]) -> bool:
    """Whether rows are mapped as they lie in their file; with mode "c", copy on write, it may have other contents."""
    base: object = rows.base
    return isinstance(base, mmap.mmap) and rows.mode != "c" and rows.flags.c_contiguous


def _places(rows: Array, file: str, start: int) -> tuple[Row, ...]:
    """Where each row of an array lies in a file."""
    size = rows[0].nbytes
    return tuple(Row(str(place), file, start + place * size, size, 0) for place in range(len(rows)))


def _contents(rows: Rows, parts: Iterable[Part]) -> Iterator[bytes]:
    """The bytes of an array's file, from those of its parts."""
    head = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(np.dtype(rows.dtype))
    shape = (len(rows.rows), *rows.shape)
    np.lib.format.write_array_header_1_0(head, {"descr": descr, "fortran_order": False, "shape": shape})
    yield head.getvalue()
    for part in parts:
        with part.path.open("rb") as stream:
            yield from part.pieces(stream)


def _parts(folder: Path, rows: Rows) -> Iterator[Part]:
    """Rows grouped by folder, so that adding or removing a file changes no other folder's parts."""
    recipe = {name: getattr(rows, name) for name in ("make", "options", "shape", "largest", "dtype", "together")}
    for _, group in itertools.groupby(rows.rows, lambda row: PurePosixPath(row.name).parent):
        while some := tuple(itertools.islice(group, _PER_PART)):
            identity = json.dumps([recipe, [_fields(row) for row in some]], sort_keys=True)
            name = hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()
            yield Part(folder / f"{name}.part", replace(rows, rows=some))


def _made(parts: Sequence[Part], processes: int, total: int) -> list[Made]:
    """The reports of the processes on each part; the first error stops all of them."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    doing = parts[0].rows.doing if parts else ""
    columns = TextColumn(doing), BarColumn(bar_width=30), MofNCompleteColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    made: list[Made] = []
    with contextlib.ExitStack() as stack:
        free = [Worker() for _ in range(processes)]
        for worker in free:
            stack.callback(worker.kill)
        bar = stack.enter_context(Progress(*columns, console=console, transient=True, disable=not console.is_terminal))
        to_make = sum(len(part.rows.rows) for part in parts)
        task = bar.add_task("", total=total, completed=total - to_make)
        waiting = collections.deque(parts)
        running: dict[Future[Made], tuple[Part, Worker]] = {}
        while waiting or running:
            while waiting and free:
                part, worker = waiting.popleft(), free.pop()
                running[worker.submit(make_part, part)] = part, worker
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                part, worker = running.pop(future)
                made.append(_result(future, part, worker))
                free.append(worker)
                bar.advance(task, len(part.rows.rows))
    return made


def _result(future: Future[Made], part: Part, worker: Worker) -> Made:
    try:
        return future.result()
    except BrokenProcessPool:
        worker.kill()
        names = [row.name for row in part.rows.rows]
        where = f"{names[0]} to {names[-1]}" if len(names) > 1 else names[0]
        how = f"a process {worker.end()} while {part.rows.doing} ({where})"
        raise DataError(f"{how}; run the same command again to resume") from None


def _lines(remarks: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each kind: `truncated: 4 files: a.jpg, b.jpg, c.jpg and 1 more`."""
    kinds: dict[str, list[str]] = {}
    for what, name in remarks:
        kinds.setdefault(what, []).append(name)
    lines = []
    for what, names in sorted(kinds.items()):
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        count = f"{len(names)} file{'' if len(names) == 1 else 's'}"
        lines.append(f"{what}: {count}: {', '.join(sorted(names)[:_SHOWN])}{more}")
    return lines


def make_part(part: Part) -> Made:
    """Writes the rows when they are made, so that few are in memory; nothing if one cannot be made.

    Raises:
        DataError: the file cannot be written, or no other part can be made, either.
    """
    made = Made()
    rows = part.rows
    digest = hashlib.sha256()
    size = rows.together or 1
    try:
        with contextlib.suppress(_IncompleteError), written(part.path) as stream:
            for start in range(0, len(rows.rows), size):
                some = rows.rows[start : start + size]
                try:
                    array, note = _array(replace(rows, rows=some))
                except DataError as error:
                    if rows.together:
                        raise
                    made.faults.append((str(error), some[0].name))
                    continue
                content = np.ascontiguousarray(array).data
                digest.update(content)
                stream.write(content)
                if note is not None:
                    made.notes.append((note, some[0].name))
            if made.faults:
                raise _IncompleteError
            stream.write(digest.digest())
    except BenchError as error:
        raise DataError(*error.lines) from None
    except OSError as error:
        raise DataError(f"{part.path}: cannot be written: {error.strerror}; {REMEDY}") from None
    return made


class _IncompleteError(Exception):
    """A part cannot be kept."""


def _array(rows: Rows) -> tuple[Array, str | None]:
    contents = [_content(row, rows) for row in rows.rows]
    shape = rows.shape
    note = None
    fault = f"{rows.make} failed while {rows.doing} {rows.rows[0].name}"
    try:
        with plugin_errors({package(rows.make)}, fault, (MemoryError,)):
            make = pkgutil.resolve_name(rows.make)
            if rows.together:
                array, shape = make(contents, **rows.options), (len(contents), *shape)
            else:
                array, note = make(contents[0], **rows.options)
    except MemoryError:
        raise DataError("needs more memory than there is") from None
    if array.shape != shape or array.dtype != rows.dtype:
        raise PluginError(f"{fault}: it made {array.dtype} of shape {array.shape}, not {rows.dtype} of {shape}")
    return array, note


def _content(row: Row, rows: Rows) -> bytes:
    place = f"{row.path}: " if rows.together else ""  # the fault of a single row is reported with its name
    if row.size > rows.largest:
        raise DataError(f"{place}larger than {rows.largest >> 20} MiB")
    try:
        with Path(row.path).open("rb") as stream:
            stream.seek(row.offset)
            content = stream.read(row.size)
    except OSError as error:
        raise DataError(f"{place}not readable ({error.strerror})") from None
    if len(content) < row.size:
        raise DataError(f"{place}truncated since it was listed")
    return content
