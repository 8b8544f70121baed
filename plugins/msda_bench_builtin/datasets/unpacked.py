"""Published files, compressed or not, which are read only with their checksum."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from msda_bench.api import DataError

_SHOWN = 200
_OPENERS: dict[bytes, Callable[[Path], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
"""By the first bytes of a file."""


@contextmanager
def reading(path: Path, what: str, remedy: str = "replace the file") -> Iterator[None]:
    """Reports whatever a damaged file raises in the block as `PATH: WHAT: why; REMEDY`.

    Raises:
        DataError: this line.
    """
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # noqa: BLE001 - damaged bytes make libraries raise anything
        why = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{path}: {what}: {why[:_SHOWN]}; {remedy}") from None


@contextmanager
def unpacked(path: Path) -> Iterator[IO[bytes]]:
    """A file's contents, compressed by gzip, bzip2 or xz or not."""
    with path.open("rb") as stream:
        head = stream.read(6)
    opener = next((opener for magic, opener in _OPENERS.items() if head.startswith(magic)), None)
    with path.open("rb") if opener is None else opener(path) as stream:
        yield stream


@contextmanager
def zip_member(path: Path, name: str) -> Iterator[IO[bytes]]:
    """The file called `name` in a zip archive, in whatever folder.

    Raises:
        ValueError: there is none, or there are several.
    """
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.namelist() if f"/{member}".endswith(f"/{name}")]
        if len(members) != 1:
            raise ValueError(f"it holds no {name}")
        with archive.open(members[0]) as stream:
            yield stream
