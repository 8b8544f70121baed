"""Whether the bytes of a file are the right ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

from msda_bench.api import File


def fault(path: Path, file: File) -> str | None:
    """What is wrong with the copy of `file` at `path`, in a few words; None when its bytes are right."""
    try:
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
    return None if found in wanted else f"wrong checksum: {kind} {found[:12]}..., expected {expected[:12]}..."


def present(path: Path, file: File) -> bool:
    """Whether a file of the right size, where that is known, is there; its bytes are not read."""
    try:
        size = path.stat().st_size
    except OSError:
        return False
    return any(length in {size, None} for _, length in _copies(file))


def _copies(file: File) -> tuple[tuple[str | None, int | None], ...]:
    """Checksum and size of every form of the file."""
    return (file.sha256 or file.md5, file.size), *file.same
