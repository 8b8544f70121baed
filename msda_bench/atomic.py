"""Files that appear complete or not at all, whichever process dies in between; all that are kept are written here.

And the user's cache folder: data that were fetched, arrays made from them, and what takes long to make.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import itertools
import os
import re
import socket
import stat
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import platformdirs

from msda_bench.errors import StoreError

CACHE = "MSDA_BENCH_CACHE"
REMEDY = f"free space, or set {CACHE} to another folder"
"""What to do where the cache cannot be written."""
NO_LINK = "is a symbolic link, which is not followed"
_CANNOT_LINK = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]+)-[0-9a-f]{32}\.tmp")


@contextlib.contextmanager
def written(path: Path, place: Callable[[Path, Path], object] = Path.replace) -> Iterator[BinaryIO]:
    """A stream whose bytes are in `path` once the block ends, durably, and nowhere if it raises.

    Args:
        path: the file; its folder is made.
        place: puts the finished file in its place, by default over an existing one.

    Raises:
        OSError: the folder cannot be made or written; nothing is changed.
    """
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
    part = temporary(path)
    try:
        with part.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        place(part, path)
    finally:
        part.unlink(missing_ok=True)
    sync(path.parent)


def write(path: Path, data: bytes) -> None:
    """Writes a file, over an existing one; raises as `written`."""
    with written(path) as stream:
        stream.write(data)


def write_new(path: Path, data: bytes) -> bool:
    """Writes a file; False if there is one, since the first writer wins; raises as `written`."""
    placed: list[bool] = []
    with written(path, lambda part, path: placed.append(_link(part, path))) as stream:
        stream.write(data)
    return placed == [True]


def write_numbered(path: Path, kind: str, data: bytes) -> Path:
    """Writes `<stem>.<kind>-<n><suffix>` beside `path`, with the first free n from 1; raises as `written`."""
    names = _numbered(path, kind, path.suffix)
    return next(name for name in names if not os.path.lexists(name) and write_new(name, data))


def quarantine(path: Path, is_good: Callable[[Path], bool]) -> Path | None:
    """Renames a damaged file to `<stem>.bad-<n>` with the first free n from 1, and returns its new path.

    `is_good` is asked after the file was taken, since another process may have written a good one in the meantime,
    which then goes back. None if nothing had to be moved.

    Raises:
        OSError: it cannot be renamed; it stays in place.
    """
    part = temporary(path)
    try:
        path.rename(part)
    except FileNotFoundError:
        return None
    try:
        back = is_good(part) and _link(part, path)
        moved = None if back else next(name for name in _numbered(path, "bad", "") if _link(part, name))
    except BaseException:
        _link(part, path)  # back again; if that fails, too, it keeps its temporary name
        part.unlink(missing_ok=True)
        raise
    part.unlink(missing_ok=True)
    sync(path.parent)
    return moved


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


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder that MSDA_BENCH_CACHE names, or else the user's own; it need not exist yet."""
    usual = "/.cache/msda-bench"
    with contextlib.suppress(RuntimeError):  # the user has no home folder; as in containers, / stands for it
        usual = platformdirs.user_cache_dir("msda-bench", appauthor=False).removeprefix("~")
    named = (os.environ if environ is None else environ).get(CACHE) or usual
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
    """Makes a folder and its parents, durably.

    Raises:
        OSError: it cannot be made.
        StoreError: its path is a link, which could lead out of the result folder.
    """
    if path.is_symlink():
        raise StoreError(f"{path}: {NO_LINK}; put a folder in its place")
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        sync(path.parent)


def temporary(path: Path) -> Path:
    """A name for an unfinished file in the same folder, which says whose it is."""
    return path.with_name(f".{path.name}.{_host()}-{os.getpid()}-{uuid.uuid4().hex}.tmp")


def is_temporary(name: str) -> bool:
    """Whether `temporary` made this name."""
    return _TEMPORARY.fullmatch(name) is not None


def is_abandoned(name: str) -> bool:
    """Whether `temporary` made this name for a process of this machine that has ended."""
    parts = _TEMPORARY.fullmatch(name)
    if parts is None or parts["host"] != _host():
        return False
    try:
        os.kill(int(parts["pid"]), 0)
    except (OSError, OverflowError) as error:
        return isinstance(error, ProcessLookupError)
    return False


def leftovers(path: Path) -> list[Path]:
    """Unfinished files for `path`: of processes that write it now, or that were killed."""
    matches = ((part, _TEMPORARY.fullmatch(part.name)) for part in path.parent.iterdir())
    return [part for part, match in matches if match and match["name"] == path.name]


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


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[BinaryIO]:
    # Without O_NONBLOCK, opening a pipe would wait for its other end for ever.
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    with os.fdopen(handle, "rb" if flags == os.O_RDONLY else "ab") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file")
        yield stream


def _numbered(path: Path, kind: str, suffix: str) -> Iterator[Path]:
    return (path.with_name(f"{path.stem}.{kind}-{number}{suffix}") for number in itertools.count(1))


def _link(part: Path, path: Path) -> bool:
    """Names a finished file; False if another has this name."""
    try:
        os.link(part, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
    else:
        return True
    # Without hard links a rename would replace an existing file, so all writers do it under a lock, which the kernel
    # releases when its holder dies.
    handle = os.open(path.parent / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    with os.fdopen(handle, "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.lexists(path):
            return False
        part.rename(path)
    return True


def _host() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]
