"""Large files in the cache, each with its checksum in a file beside it, so that changed bytes are never used."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from msda_bench.atomic import written


def seal(path: Path, digest: str) -> None:
    """Keeps the sha256 of a file that was just written, with the size and times that show later changes.

    Raises:
        OSError: the checksum cannot be written.
    """
    with written(seal_of(path)) as stream:
        stream.write(" ".join((digest, *_state(path))).encode())


def is_intact(path: Path, *, read: bool = False) -> bool:
    """Whether a file has the bytes that were sealed.

    They are read only if its size, a time or its place on the disk changed since, as after a copy; or if `read` is set,
    which also notices the errors of a disk.
    """
    try:
        digest, *sealed = seal_of(path).read_text("ascii").split()
        state = [*_state(path)]
        if state == sealed and not read:
            return True
        with path.open("rb") as stream:
            if hashlib.file_digest(stream, "sha256").hexdigest() != digest:
                return False
    except (OSError, ValueError):  # either is missing, or the checksum is damaged
        return False
    if state != sealed:
        with contextlib.suppress(OSError):  # such as a cache of another user; it is read again next time
            seal(path, digest)
    return True


def seal_of(path: Path) -> Path:
    """The file beside it that holds its checksum."""
    return path.with_name(f"{path.name}.sha256")


def _state(path: Path) -> tuple[str, ...]:
    status = path.stat()
    # The time of the last change of the inode, too, since programs can set that of the contents.
    return tuple(map(str, (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)))
