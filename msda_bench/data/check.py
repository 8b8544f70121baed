"""Whether the bytes of a file are the right ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

from msda_bench.api import File


def fault(path: Path, file: File) -> str | None:
    """What is wrong with the copy of `file` at `path`, in a few words; None when its bytes are right."""
    try:
        size = path.stat().st_size
        if size != file.size:
            what = "truncated" if size < file.size else "too long"
            return f"{what}: {size} bytes, expected {file.size}"
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError as error:
        return f"not readable: {error.strerror}"
    return None if found == file.sha256 else f"wrong checksum: sha256 {found[:12]}..., expected {file.sha256[:12]}..."


def present(path: Path, file: File) -> bool:
    """Whether a file of the right size is there; its bytes are not read."""
    try:
        return path.stat().st_size == file.size
    except OSError:
        return False
