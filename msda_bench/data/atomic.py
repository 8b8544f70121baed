"""Files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def publish(part: Path, path: Path) -> None:
    """Moves a finished file of the same folder into place, durably.

    Raises:
        OSError: it cannot be moved; `path` is unchanged.
    """
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def leftovers(path: Path) -> list[Path]:
    """Unfinished files of `written` for `path`: of processes that write it now, or that were killed."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{32}}")
    return [part for part in path.parent.iterdir() if name.fullmatch(part.name)]


@contextlib.contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes become `path` when the block ends without an error, and are deleted otherwise.

    Raises:
        OSError: the folder cannot be made or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")  # not mkstemp, whose files only their owner may read
    try:
        with part.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        publish(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
