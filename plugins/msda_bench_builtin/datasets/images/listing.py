"""Finds the images of a folder or a tar archive."""

from __future__ import annotations

import os
import re
import stat
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast

from msda_bench.api import DataError, Row
from msda_bench_builtin.datasets.images.decode import SUFFIXES

_SHOWN = 3
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
"""The first bytes of gzip, bzip2, xz, zstd and zip."""
_OTHERS = (".npz", ".parquet", ".csv.gz", ".tsv.gz", ".xlsx", ".xlsm", ".xlsb", ".ods")
"""Endings of other files that begin as an archive does."""
_LARGEST_HEADER = 1 << 20
"""The maximum size of the names and other fields of one member of an archive, in bytes."""
_MOST_FILES = 1 << 22
"""The maximum number of files in an archive; DomainNet has 0.6 million."""
_STARTS = re.compile(rb"\xff\xd8\xff|\x89PNG\r\n\x1a\n|GIF8[79]a|RIFF....WEBP", re.DOTALL)
"""The first bytes of an image, whatever the file's ending: JPEG, PNG, GIF, WebP."""


class _Limited:
    """A tar archive's stream, of which no part claims more bytes than allowed: Python reads long names whole."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.tell = stream.tell
        self.seek = stream.seek

    def read(self, size: int, /) -> bytes:
        """Reads as from any stream; an OSError for a part that is too large, or of negative size."""
        if not 0 <= size <= _LARGEST_HEADER:
            raise OSError(f"a part claims {size} bytes")
        return self._stream.read(size)


class Listed(NamedTuple):
    """The files of a folder or archive that are not hidden.

    Attributes:
        images: those that end as an image does or, with any other ending, begin as one.
        others: how many of the rest there are of each ending.
    """

    images: tuple[Row, ...]
    others: Counter[str]

    def endings(self) -> list[str]:
        """How many others there are, such as `3 .txt`."""
        return [f"{count} {ending}" for ending, count in sorted(self.others.items())]


@lru_cache(maxsize=4096)
def plain_name(name: str) -> str:
    """A name in a form that all copies of a dataset share: `Real World`, `real_world` and `RealWorld` are the same."""
    return re.sub(r"[ _-]+", "", name).casefold()


def names_text(names: Iterable[str]) -> str:
    """`4: a, b, c and 1 more`, sorted."""
    every = sorted(names)
    text = f"{len(every)}: {', '.join(every[:_SHOWN])}"
    if len(every) > _SHOWN:
        text += f" and {len(every) - _SHOWN} more"
    return text


def files_of(path: Path) -> Listed:
    """All files of a folder, or of an uncompressed tar archive, by path.

    Raises:
        DataError: it cannot be read.
    """
    try:
        status = path.stat()
        if path.is_dir():
            return _sorted(_folder_rows(path))
        return _tar_rows(path, status.st_mtime_ns, status.st_size)
    except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError) as error:
        raise DataError(f"{path}: not a tar archive, or a compressed or damaged one ({error}); unpack it") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error}); replace it") from None


def is_archive(path: Path) -> bool:
    """Whether a file begins as a tar archive does, or as a compressed file, which `files_of` refuses; reads no more.

    Raises:
        DataError: it cannot be read.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(tarfile.BLOCKSIZE)
        if path.name.lower().endswith(_OTHERS):
            return False
        return head.startswith(_COMPRESSED) or bool(tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape"))
    except tarfile.TarError:
        return False
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error}); replace it") from None


def row_of(folder: Path, name: str) -> Row | None:
    """One file of a folder; None if it does not exist."""
    path = os.path.join(folder, name)  # noqa: PTH118 - half a million of them
    try:
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):  # such as a name with a null character
        return None
    return Row(name, path, 0, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def _sorted(rows: Iterable[Row]) -> Listed:
    images = []
    others = Counter[str]()
    for row in rows:
        if any(part.startswith(".") and part != "." for part in row.name.split("/")):
            continue
        ending = PurePosixPath(row.name).suffix.lower()
        if ending in SUFFIXES or _STARTS.match(content_of(row, 16)):
            images.append(row)
        else:
            others[ending or "without an ending"] += 1
    return Listed(tuple(sorted(images, key=lambda row: row.name)), others)


def content_of(row: Row, most: int) -> bytes:
    """The first bytes of a file, or of a member of an archive."""
    with Path(row.path).open("rb") as stream:
        stream.seek(row.offset)
        return stream.read(min(row.size, most))


def _folder_rows(folder: Path) -> Iterator[Row]:
    for parent, _, names in os.walk(folder, followlinks=True):  # as the checksum does
        below = Path(parent).relative_to(folder).as_posix()
        for name in names:
            row = row_of(folder, f"{below}/{name}".removeprefix("./"))
            if row is not None:
                yield row


@lru_cache(maxsize=1)
def _tar_rows(path: Path, stamp: int, _: int) -> Listed:
    """Cached, so that the archive is read once for all domains."""
    rows = []
    with path.open("rb") as stream:
        limited = cast("IO[bytes]", _Limited(stream))
        with tarfile.open(fileobj=limited, mode="r:") as archive:
            while (member := archive.next()) is not None:
                archive.members = []  # type: ignore[attr-defined]  # it would keep all of them
                if member.size < 0:  # Python would read the same members again and again
                    raise tarfile.ReadError("a member of negative size")
                if member.isreg():
                    rows.append(Row(member.name, str(path), member.offset_data, member.size, stamp))
                if len(rows) > _MOST_FILES:
                    raise tarfile.ReadError(f"more than {_MOST_FILES} files")
    return _sorted(rows)
