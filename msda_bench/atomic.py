"""Files that appear complete or not at all, whichever process dies in between; all that are kept are written here.

And the user's cache folder: data that were fetched, arrays made from them, and what takes long to make.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import socket
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import platformdirs

from msda_bench.errors import StoreError

CACHE = "MSDA_BENCH_CACHE"
REMEDY = f"free space, or set {CACHE} to another folder"
"""What to do where the cache cannot be written."""
NO_LINK = "is a symbolic link, which is not followed"
_OWNER = re.compile(r"(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]+)-[0-9a-f]+\.(?:tmp|jsonl)$")


@contextlib.contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes are in `path` once the block ends, durably, and nowhere if it raises; makes its folder."""
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
    part = temporary(path)
    try:
        with part.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    sync(path.parent)


def write(path: Path, data: bytes) -> None:
    """Writes a file, over an existing one."""
    with written(path) as stream:
        stream.write(data)


def write_new(path: Path, data: bytes) -> bool:
    """Writes a file; False if there is one."""
    if os.path.lexists(path):
        return False
    write(path, data)
    return True


def read_file(path: Path, limit: int | None = None) -> bytes:
    """The bytes of a file that `opened` takes; an OSError (EFBIG) if there are more than `limit`."""
    with opened(path, os.O_RDONLY) as handle, open(handle, "rb", closefd=False) as stream:
        size = os.fstat(handle).st_size
        if limit is not None and size > limit:
            raise OSError(errno.EFBIG, f"Larger than {limit} bytes")
        return stream.read(size)  # not more, since `read` allocates all of it at once


@contextlib.contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """A handle of a regular file; an OSError for a link (ELOOP) and for anything else, such as a pipe (EINVAL)."""
    # Without O_NONBLOCK, opening a pipe would wait for its other end for ever.
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file")
        yield handle
    finally:
        os.close(handle)


def cache_folder() -> Path:
    """The folder that MSDA_BENCH_CACHE names, or else the user's own; it need not exist yet."""
    usual = "/.cache/msda-bench"
    with contextlib.suppress(RuntimeError):  # the user has no home folder; as in containers, / stands for it
        usual = platformdirs.user_cache_dir("msda-bench", appauthor=False).removeprefix("~")
    named = os.environ.get(CACHE) or usual
    return Path(os.path.expanduser(named)).absolute()  # noqa: PTH111 - `~name` of no user is a folder of that name


def write_cache(path: Path, data: bytes) -> OSError | None:
    """Writes a cache for `read_cache`; returns the error if it cannot be written, which is no harm."""
    try:
        write(path, hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
    except OSError as error:
        return error
    return None


def read_cache(path: Path, limit: int | None = None) -> bytes | None:
    """The contents of a cache, of at most this size; None if it is missing or damaged."""
    try:
        digest, _, data = read_file(path, limit).partition(b"\n")
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest().encode() == digest else None


def make_folder(path: Path) -> None:
    """Makes a folder and its parents, durably; a StoreError for a link, which could lead out of a result folder."""
    if path.is_symlink():
        raise StoreError(f"{path}: {NO_LINK}; put a folder in its place")
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        sync(path.parent)


def temporary(path: Path) -> Path:
    """A name for an unfinished file in the same folder, which says whose it is."""
    return path.with_name(f".{path.name}.{host()}-{os.getpid()}-{uuid.uuid4().hex}.tmp")


def owner_lives(name: str) -> bool | None:
    """Whether the process lives that a temporary file or a log is named after; None if that is not to be known here."""
    owner = _OWNER.search(name)
    if owner is None or owner["host"] != host():
        return None
    try:
        os.kill(int(owner["pid"]), 0)
    except (OSError, OverflowError) as error:
        return not isinstance(error, ProcessLookupError)
    return True


def leftovers(path: Path) -> list[Path]:
    """Unfinished files for `path`: of processes that write it now, or that were killed."""
    parts = (part for part in path.parent.glob(".*.tmp") if _OWNER.search(part.name))
    return [part for part in parts if part.name.rsplit(".", 2)[0] == f".{path.name}"]


def sync(folder: Path) -> None:
    """Waits until the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot sync a folder
            raise
    finally:
        os.close(handle)


@contextlib.contextmanager
def named(path: Path, what: str) -> Iterator[None]:
    """Turns an OSError in the block into a StoreError: `<path>: <what>: <reason>`."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: {what}: {error.strerror or error}") from error


def host() -> str:
    """A short name of this machine."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
