"""Checks the bytes of files, of folders that the user places, and of large files in the cache.

The checksum of a folder is kept in the cache until a file in it changes; a large file in the cache has its own in a
file beside it, so that changed bytes are never used.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msda_bench.api import ByHand, File
from msda_bench.atomic import read_cache, write, write_cache


def fault(path: Path, file: File, memory: Path | None = None) -> str | None:
    """The fault of the copy of `file` at `path`, in a few words; None if its bytes are right.

    The checksum of a folder that the user places is that of `tree_sha256`, which explains `memory`.
    """
    try:
        if path.is_dir() and isinstance(file.origin, ByHand):
            return _folder_fault(path, file, memory)
        size = path.stat().st_size
        wanted = [start for start, length in _copies(file) if length in {size, None}]
        if file.size is not None and not wanted:
            what = "truncated" if size < file.size else "too long"
            return f"{what}: {size} bytes, expected {file.size}"
        kind, expected = (file.checksum or "sha256 ").split(" ")
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, kind).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as error:
        return f"not readable: {error.strerror}"
    if not expected:
        return f"not read, since no checksum was given; it has sha256 {digest}"
    right = any(digest.startswith(start) for start in wanted if start)
    return None if right else f"wrong checksum: {kind} {digest[:12]}..., expected {expected[:12]}..."


def _folder_fault(path: Path, file: File, memory: Path | None) -> str | None:
    try:
        digest = tree_sha256(path, memory)
    except OSError as error:  # such as a link that leads nowhere
        return f"not readable: {error.filename}: {error.strerror}"
    if file.sha256 is None:
        return f"not read, since no checksum was given; it has sha256 {digest}"
    return None if digest == file.sha256 else f"wrong checksum: sha256 {digest[:12]}..., expected {file.sha256[:12]}..."


def present(path: Path, file: File) -> bool:
    """Whether a file of the right size, if that is known, is there; its bytes are not read."""
    try:
        size = path.stat().st_size
    except OSError:
        return False
    return any(length in {size, None} for _, length in _copies(file))


def _copies(file: File) -> tuple[tuple[str | None, int | None], ...]:
    """Checksum and size of each form of the file."""
    return (file.sha256 or file.md5, file.size), *file.same


def tree_files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Path below the folder, with forward slashes, and status of each file; hidden files and folders are skipped.

    Raises:
        OSError: a folder cannot be read, a link leads nowhere or to a folder above it, or something is not a file.
    """

    def refuse(error: OSError) -> None:
        raise error

    for parent, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            path = Path(parent, name)
            if path.is_symlink() and Path(parent).resolve().is_relative_to(path.resolve()):
                raise OSError(errno.ELOOP, "it leads back to a folder above it", str(path))
        for name in sorted(names):
            if name.startswith("."):
                continue
            path = Path(parent, name)
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):  # such as a pipe, which could block for ever
                raise OSError(errno.EINVAL, "it is neither a file nor a folder", str(path))
            yield path.relative_to(folder).as_posix(), status


def tree_sha256(folder: Path, memory: Path | None = None) -> str:
    """sha256 of a line `SHA256  PATH` for each file of the folder, by path; docs/images.md has a command for it.

    Args:
        folder: the folder; read completely, unless the memory has its checksum.
        memory: a folder for checksums, by the files' paths, sizes and times; None to keep none.

    Raises:
        OSError: a file cannot be read.
    """
    files = sorted(tree_files(folder), key=lambda file: os.fsencode(file[0]))
    kept = None if memory is None else memory / _identity(folder, files)
    known = None if kept is None else read_cache(kept)
    if known:
        return known.decode()
    lines = hashlib.sha256()
    for name, _ in files:
        with (folder / name).open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        lines.update(f"{digest}  ".encode() + os.fsencode(name) + b"\n")
    if kept is not None:
        write_cache(kept, lines.hexdigest().encode())
    return lines.hexdigest()


def _identity(folder: Path, files: list[tuple[str, os.stat_result]]) -> str:
    digest = hashlib.sha256(os.fsencode(folder.resolve()))
    for name, status in files:
        digest.update(b"\0" + os.fsencode(name) + f"\0{_state(status)}".encode())
    return digest.hexdigest()


def seal(path: Path, digest: str) -> None:
    """Keeps the sha256 of a file that was just written, with the size and times that show later changes.

    Raises:
        OSError: the checksum cannot be written.
    """
    words = [digest, *map(str, _state(path.stat()))]
    write(seal_of(path), " ".join(words).encode())


def is_intact(path: Path, *, read: bool = False) -> bool:
    """Whether a file has the bytes that were sealed.

    They are read only if its size, a time or its place on the disk changed since, as after a copy; or if `read` is set,
    which also notices the errors of a disk.
    """
    try:
        digest, *sealed = seal_of(path).read_text("ascii").split()
        state = list(map(str, _state(path.stat())))
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


def _state(status: os.stat_result) -> tuple[int, ...]:
    # The time of the last change of the inode, too, since programs can set that of the contents.
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
