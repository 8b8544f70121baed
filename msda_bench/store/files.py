"""Files that appear complete or not at all, and never replace an existing one."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import re
import socket
import stat
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from msda_bench.errors import StoreError

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_TEMPORARY = re.compile(r"\..+\.(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]+)-[0-9a-f]{32}\.tmp")


def write_new(path: Path, data: bytes) -> bool:
    """Writes a new file; False if it existed, since the first writer wins.

    Raises:
        OSError: it cannot be written; nothing is changed. The next two functions raise it, too.
    """
    with _written(path, data) as part:
        made = _place(part, path)
    if made:
        _sync(path.parent)
    return made


def write_numbered(path: Path, kind: str, data: bytes, suffix: str = ".json") -> Path:
    """Writes a file next to `path`, named `<stem>.<kind>-<n><suffix>` with the first free n from 1."""
    with _written(path, data) as part:
        made = _place_numbered(part, path, kind, suffix)
    _sync(path.parent)
    return made


def write_over(path: Path, data: bytes) -> None:
    """Writes a file in one step, replacing an existing one."""
    with _written(path, data) as part:
        part.replace(path)
    _sync(path.parent)


def move_aside(path: Path, kind: str, keep: Callable[[Path], bool]) -> Path | None:
    """Renames a file to `<stem>.<kind>-<n>` with the first free n from 1, and returns its new path.

    `keep` is asked whether it is good after it was moved, since another process may have written a good one in the
    meantime, which is then moved back. None if nothing had to be moved.

    Raises:
        OSError: it cannot be renamed; it stays in place.
    """
    part = temporary(path)
    try:
        path.rename(part)
    except FileNotFoundError:
        return None
    try:
        made = None if keep(part) and _place(part, path) else _place_numbered(part, path, kind, "")
    except BaseException:
        _place(part, path)  # back again; if that fails, too, it keeps its temporary name
        part.unlink(missing_ok=True)
        raise
    part.unlink(missing_ok=True)
    _sync(path.parent)
    return made


def read_file(path: Path, limit: int | None = None) -> bytes:
    """The bytes of a regular file, at most `limit`.

    Raises:
        OSError: it cannot be read, is larger (EFBIG), or is not a regular file, such as a link (ELOOP) or a pipe
        (EINVAL).
    """
    with _opened(path, os.O_RDONLY) as stream:
        size = os.fstat(stream.fileno()).st_size
        if limit is not None and size > limit:
            raise OSError(errno.EFBIG, f"Larger than {limit} bytes")
        return stream.read(size)  # not more, since `read` allocates all of it at once


def append(path: Path, data: bytes) -> None:
    """Appends to a regular file at once, so that several processes may; creates a missing one."""
    with _opened(path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def write_cache(path: Path, data: bytes) -> None:
    """Writes a cache for `read_cache`; ignores errors."""
    with contextlib.suppress(OSError):
        write_over(path, hashlib.sha256(data).hexdigest().encode() + b"\n" + data)


def read_cache(path: Path, limit: int) -> bytes | None:
    """The contents of a cache of at most this size; None if it is missing or damaged."""
    try:
        digest, _, data = read_file(path, limit).partition(b"\n")
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest().encode() == digest else None


def make_folder(path: Path) -> None:
    """Makes a folder and its parents, durably.

    Raises:
        OSError: it cannot be made.
        StoreError: its path is a link, which could lead out of the result folder.
    """
    if path.is_symlink():
        raise StoreError(f"{path}: is a symbolic link, which is not followed; put a folder in its place")
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        _sync(path.parent)


def temporary(path: Path) -> Path:
    """A name for an unfinished file in the same folder, which includes its process."""
    return path.with_name(f".{path.name}.{_host()}-{os.getpid()}-{uuid.uuid4().hex}.tmp")


def is_temporary(name: str) -> bool:
    """Whether `temporary` made this name."""
    return _TEMPORARY.fullmatch(name) is not None


def is_abandoned(name: str) -> bool:
    """Whether `temporary` made this name for a process of this machine that has ended."""
    found = _TEMPORARY.fullmatch(name)
    if found is None or found["host"] != _host():
        return False
    try:
        os.kill(int(found["pid"]), 0)
    except (OSError, OverflowError) as error:
        return isinstance(error, ProcessLookupError)
    return False


@contextlib.contextmanager
def named(path: Path, what: str) -> Iterator[None]:
    """Turns an OSError in the block into a StoreError: `<path>: <what>: <reason>`."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: {what}: {error.strerror or error}") from error


@contextlib.contextmanager
def _written(path: Path, data: bytes) -> Iterator[Path]:
    part = temporary(path)
    try:
        with part.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        yield part
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[BinaryIO]:
    # Without O_NONBLOCK, opening a pipe would wait for its other end for ever.
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    with os.fdopen(handle, "rb" if flags == os.O_RDONLY else "ab") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file")
        yield stream


def _place_numbered(part: Path, path: Path, kind: str, suffix: str) -> Path:
    names = (path.with_name(f"{path.stem}.{kind}-{number}{suffix}") for number in itertools.count(1))
    return next(name for name in names if _place(part, name))


def _place(part: Path, path: Path) -> bool:
    try:
        os.link(part, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _place_locked(part, path)
    return True


def _place_locked(part: Path, path: Path) -> bool:
    """Renames under a lock, for file systems without hard links.

    A rename alone would replace an existing file, and readers would see an incomplete one if the final name were opened
    with O_EXCL. All writers use the lock, and the kernel releases it when its holder dies.
    """
    import fcntl

    handle = os.open(path.parent / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    with os.fdopen(handle, "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.lexists(path):
            return False
        part.rename(path)
    return True


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot sync a folder
            raise
    finally:
        os.close(handle)


def _host() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
