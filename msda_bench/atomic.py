"""Files that appear complete or not at all, whichever process dies in between; all that are kept are written here.

And the user's cache folder: data that were fetched, arrays made from them, and what takes long to make.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shlex
import shutil
import socket
import stat
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import platformdirs

from msda_bench.errors import StoreError

CACHE = "MSDA_BENCH_CACHE"
REMEDY = f"free space, or set {CACHE} to another folder"
"""What to do where the cache cannot be written."""
NO_LINK = "is a symbolic link, which is not followed"
_OWNER = re.compile(r"(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]+)(?:-(?P<started>[0-9a-f]{1,16}))?-[0-9a-f]+\.(?:tmp|jsonl)$")
NOT_THERE = (0, 0, 0)
"""The `stamp` of no file."""
_STARTED = 19
"""The place of a process's start time among the fields after its name in /proc/PID/stat."""


@contextlib.contextmanager
def written(path: Path, check: Callable[[], None] = lambda: None) -> Iterator[BinaryIO]:
    """A stream whose bytes are in `path` once the block ends, durably, and nowhere if it raises; makes its folder.

    `check` is called once all bytes are on the disk; if it raises, the former file stays.
    """
    if not path.parent.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
    part = temporary(path)
    try:
        with part.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        check()
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
    process = os.getpid()
    return path.with_name(f".{path.name}.{host()}-{process}-{_started(process):x}-{uuid.uuid4().hex}.tmp")


def owner_lives(name: str) -> bool | None:
    """Whether the process lives that a temporary file or a log is named after; None if that is not to be known here."""
    owner = _OWNER.search(name)
    if owner is None or owner["host"] != host():
        return None
    try:
        os.kill(int(owner["pid"]), 0)
    except (OSError, OverflowError) as error:
        return not isinstance(error, ProcessLookupError)
    # A container that was started again gives its processes the numbers of those before.
    started = int(owner["started"] or "0", 16)
    return not started or _started(int(owner["pid"])) in {0, started}


def _started(process: int) -> int:
    """When a process started, in clock ticks since the machine did; 0 where the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        # Otherwise these are the processes outside of a container.
        if Path("/proc/self").readlink().name == str(os.getpid()):
            status = Path(f"/proc/{process}/stat").read_bytes()
            return int(status.rpartition(b")")[2].split()[_STARTED])
    return 0


def unfinished(folder: Path) -> Iterator[Path]:
    """The unfinished files in a folder and below it: of processes that write them now, or that were killed."""
    return (part for part in folder.rglob(".*.tmp") if _OWNER.search(part.name))


def leftovers(path: Path) -> list[Path]:
    """Unfinished files for `path`: of processes that write it now, or that were killed."""
    parts = (part for part in path.parent.glob(".*.tmp") if _OWNER.search(part.name))
    return [part for part in parts if part.name.rsplit(".", 2)[0] == f".{path.name}"]


def blocked(part: Path) -> str:
    """Tells, after what an unfinished file keeps from being written, whose file it is and what to do."""
    if owner_lives(part.name):
        return f" by another process; try again later, or remove {part} if nobody does"
    where = "on another machine, in another container, or before this machine was started again"
    return f" by a process {where}; once none is at work there, remove its file: rm {shlex.quote(str(part))}"


def keep_aside(path: Path, folder: Path) -> str:
    """Gives a damaged file a second name in a folder, under which it stays; returns a line that tells so."""
    kept = folder / f"{path.name}.damaged-{path.stat().st_mtime_ns:x}"
    try:
        os.link(path, kept)
    except FileExistsError:
        pass
    except OSError:  # this file system has no second names
        with path.open("rb") as source, written(kept) as copy:
            shutil.copyfileobj(source, copy)
    return f"{path}: is kept as {kept.name}, since not all of it could be read"


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


def stamp(path: Path) -> tuple[int, int, int]:
    """Changes when a file grows, or another takes its path; zeros without one."""
    with contextlib.suppress(OSError):
        status = path.lstat()
        return status.st_ino, status.st_size, status.st_mtime_ns
    return NOT_THERE


def refuse_other(path: Path, read: tuple[int, int, int]) -> None:
    """Raises a StoreError if a file has another `stamp` than when it was read."""
    if stamp(path) != read:
        raise StoreError(f"{path}: another process has replaced it since it was read; run the command again")


def host() -> str:
    """A short name for the processes whose numbers can be told apart here.

    They run on a machine of this name, since it was started, and in the same container, where the system tells: two
    containers may have one hostname, and the same numbers for their processes.
    """
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii"))
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]
