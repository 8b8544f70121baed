"""The checksum of a folder, cached until a file in it changes."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msda_bench.atomic import written

_DIGEST = hashlib.sha256().digest_size * 2


def tree_files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Path below the folder, with forward slashes, and status of each file; hidden files and folders are skipped.

    Raises:
        OSError: a folder cannot be read, a link leads nowhere or to a folder above it, or something is not a file.
    """

    def refuse(error: OSError) -> None:
        raise error

    for parent, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(parent, name) for name in folders):
            if path.is_symlink() and Path(parent).resolve().is_relative_to(path.resolve()):
                raise OSError(errno.ELOOP, "it leads back to a folder above it", str(path))
        for path in (Path(parent, name) for name in sorted(names) if not name.startswith(".")):
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
    if kept is not None and (known := _known(kept)):
        return known
    digest = hashlib.sha256()
    for name, _ in files:
        with (folder / name).open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(f"{found}  ".encode() + os.fsencode(name) + b"\n")
    if kept is not None:
        _keep(kept, digest.hexdigest())
    return digest.hexdigest()


def _identity(folder: Path, files: list[tuple[str, os.stat_result]]) -> str:
    digest = hashlib.sha256(os.fsencode(folder.resolve()))
    for name, status in files:
        state = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
        digest.update(b"\0" + os.fsencode(name) + f"\0{state}".encode())
    return digest.hexdigest()


def _known(kept: Path) -> str | None:
    try:
        content = kept.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return None
    digest = content[:_DIGEST]
    return digest if content == _checked(digest) else None


def _keep(kept: Path, digest: str) -> None:
    try:
        with written(kept) as stream:
            stream.write(_checked(digest).encode())
    except OSError:  # it is read again next time
        return


def _checked(digest: str) -> str:
    """The digest with a checksum of its own, since changed digits would name another folder."""
    return f"{digest} {hashlib.sha256(digest.encode()).hexdigest()}"
