"""Compressed files, read up to a size, since a few bytes may unpack to very many."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

CHUNK = 1 << 26
"""The maximum size of a single read: a tar file's own fields, such as long names, are read whole."""


class Limited:
    """A readable stream that ends after at most `most` bytes.

    Raises:
        OSError: on reading or seeking beyond them, or on a read of more than `chunk` bytes.
    """

    def __init__(self, stream: io.BufferedIOBase, most: int, chunk: int = CHUNK) -> None:
        self._stream = stream
        self._most = most
        self._chunk = chunk

    def seekable(self) -> bool:
        """True."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Reads as from any stream; everything if no size is given."""
        if size > self._chunk or size < -1:  # a damaged tar archive may claim a negative size
            raise OSError(f"a part claims {size} bytes")
        left = self._most + 1 - self._stream.tell()
        data = self._stream.read(left if size < 0 else min(size, left))
        self._check(self._stream.tell())
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Seeks as in any stream, except from the end, which is not known."""
        place = offset if whence == os.SEEK_SET else offset + self._stream.tell()
        self._check(place)
        return self._stream.seek(place)

    def tell(self) -> int:
        """The number of bytes read so far."""
        return self._stream.tell()

    def _check(self, place: int) -> None:
        if place > self._most:
            raise OSError(f"unpacks to more than {self._most} bytes")


@contextmanager
def tar_gz(source: Path | IO[bytes], most: int) -> Iterator[tarfile.TarFile]:
    """A gzipped tar archive, of which at most `most` bytes are unpacked.

    Raises:
        OSError, EOFError, zlib.error, tarfile.TarError: it is larger, or not such an archive.
    """
    with gzip.open(source) as stream:
        limited = cast("IO[bytes]", Limited(stream, most))
        with tarfile.open(fileobj=limited, mode="r:") as archive:
            yield archive
