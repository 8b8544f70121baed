"""Checks that the bytes of a file are the right ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

from msda_bench.api import ByHand, File
from msda_bench.data.tree import tree_sha256


def fault(path: Path, file: File, memory: Path | None = None) -> str | None:
    """The fault of the copy of `file` at `path`, in a few words; None if its bytes are right.

    Args:
        path: the copy; for a folder that the user places, the checksum is that of `tree_sha256`.
        file: the expected file.
        memory: a folder that keeps the checksums of folders already read; None to keep none.
    """
    try:
        if path.is_dir() and isinstance(file.origin, ByHand):
            return _folder_fault(path, file, memory)
        size = path.stat().st_size
        wanted = [digest for digest, length in _copies(file) if length in {size, None}]
        if file.size is not None and not wanted:
            what = "truncated" if size < file.size else "too long"
            return f"{what}: {size} bytes, expected {file.size}"
        kind, expected = (file.checksum or "sha256 ").split(" ")
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, kind).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as error:
        return f"not readable: {error.strerror}"
    if not expected:
        return f"not read, since no checksum was given; it has sha256 {found}"
    right = any(found.startswith(digest) for digest in wanted if digest)
    return None if right else f"wrong checksum: {kind} {found[:12]}..., expected {expected[:12]}..."


def _folder_fault(path: Path, file: File, memory: Path | None) -> str | None:
    try:
        found = tree_sha256(path, memory)
    except OSError as error:  # such as a link that leads nowhere
        return f"not readable: {error.filename}: {error.strerror}"
    if file.sha256 is None:
        return f"not read, since no checksum was given; it has sha256 {found}"
    return None if found == file.sha256 else f"wrong checksum: sha256 {found[:12]}..., expected {file.sha256[:12]}..."


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
