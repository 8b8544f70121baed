"""Lists the members of a zip archive, and of archives before it in the same file, as after joining them by `cat`."""

from __future__ import annotations

import io
import os
import zipfile
from typing import TYPE_CHECKING, BinaryIO

from msda_bench.errors import message_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MOST = 100
"""The maximum number of archives in one file."""
_END, _END_SIZE = b"PK\x05\x06", 22
"""How the last entry of an archive begins, and its size without the comment, whose length its last two bytes hold."""


class _Beginning(io.RawIOBase):
    """The first bytes of a file, as a file of their own."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise OSError(f"{offset} is before the beginning")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        self._stream.seek(self._at)
        piece = self._stream.read(max(0, min(len(view), self._size - self._at)))
        view[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def members_of(stream: BinaryIO) -> tuple[dict[str, list[zipfile.ZipInfo]], str]:
    """The members of the archives in a file, by name, and what keeps the rest of it from being read, if anything."""
    members: dict[str, list[zipfile.ZipInfo]] = {}
    end = stream.seek(0, os.SEEK_END)
    unread = ""
    try:
        for _ in range(_MOST):
            start, some, is_end = _last(stream, end)
            for member in some:
                members.setdefault(member.filename, []).append(member)
            if not is_end:
                unread = "bytes follow the end of the archive"
            if start == 0:
                return members, unread
            end = start
    except Exception as error:  # noqa: BLE001 - zipfile raises anything where the bytes make no sense
        return members, message_of(error)
    return members, f"more than {_MOST} archives are joined in it"


def _last(stream: BinaryIO, end: int) -> tuple[int, list[zipfile.ZipInfo], bool]:
    """Where the last archive of these first bytes of a file begins, its members, and whether nothing follows it."""
    file = io.BufferedReader(_Beginning(stream, end))
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        comment = len(archive.comment)
        file.seek(end - _END_SIZE - comment)
        last = file.read(_END_SIZE)
    places = [archive.start_dir, *(member.header_offset for member in members)]
    if min(places) < 0 or max(places) > end:
        raise zipfile.BadZipFile("a member is beyond the file")
    is_end = last.startswith(_END) and int.from_bytes(last[-2:], "little") == comment
    return min(places), members, is_end
