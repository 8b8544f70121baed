"""Downloads a file from the first address that has it, resuming earlier downloads."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from msda_bench import __version__
from msda_bench.api import File, Url
from msda_bench.atomic import sync
from msda_bench.data.check import fault
from msda_bench.errors import DataError, describe, message_of

SCHEMES = ("http", "https", "file")
TIMEOUT = 30
"""Seconds without a byte after which an address is given up."""
TRIES = 3
"""Requests to an address, as long as each brings more bytes than the last."""
_CHUNK = 1 << 18
_LARGEST = 1 << 32
"""The maximum size of a file whose size is unknown, in bytes."""
_PARTIAL = 206
_OF_THE_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
"""Errors of the local disk rather than of a server."""


def download_url(file: File, origin: Url, path: Path, report: Callable[[str], None]) -> None:
    """Puts the file at `path`, complete and with the right bytes, or leaves `path` unchanged.

    Received bytes are kept in `<path>.part` until it is complete; a later call resumes from there. Of several processes
    one downloads and the others wait for it.

    Raises:
        DataError: no address has the right bytes.
        OSError: the cache cannot be written.
    """
    part = path.with_name(path.name + ".part")
    with _locked(part) as stream:
        if fault(path, file) is None:  # downloaded by another process
            part.unlink()
            return
        faults = []
        for address in origin.addresses:
            reason = _from_address(file, address, part, stream)
            if reason is None:
                os.fsync(stream.fileno())
                part.replace(path)
                sync(path.parent)
                return
            faults.append(f"{address}: {reason}")
            report(f"{file.path}: {faults[-1]}")
    raise DataError(f"{file.path}: could not be fetched: {'; '.join(faults) or 'it has no address'}")


@contextlib.contextmanager
def _locked(part: Path) -> Iterator[IO[bytes]]:
    """The part file, open at its end and locked; the lock ends with the process, for any reason."""
    while True:
        with os.fdopen(os.open(part, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666), "ab") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            if not _still_there(part, stream):  # the previous holder of the lock moved or removed the file
                continue
            try:
                yield stream
            finally:
                if not _length(stream):
                    part.unlink(missing_ok=True)
            return


def _still_there(part: Path, stream: IO[bytes]) -> bool:
    try:
        return part.stat().st_ino == os.fstat(stream.fileno()).st_ino
    except FileNotFoundError:
        return False


def _from_address(file: File, address: str, part: Path, stream: IO[bytes]) -> str | None:
    """Appends the missing bytes; None if the part file is complete and right, else the fault of the address."""
    if urlsplit(address).scheme not in SCHEMES:
        return f"not an address of the schemes {', '.join(SCHEMES)}"
    reason: str | None = None
    for _ in range(TRIES):
        start = _length(stream)
        reason = _one_try(file, address, part, stream)
        length = _length(stream)
        whole = file.size is None or length >= file.size
        if reason is not None and whole:  # complete but wrong: discard it
            stream.truncate(0)
        if reason is None or not (start if whole else length > start):  # another request would return the same
            break
    return reason


def _one_try(file: File, address: str, part: Path, stream: IO[bytes]) -> str | None:
    try:
        if file.size is None:  # the missing bytes are unknown: fetch it again
            stream.truncate(0)
        if file.size is None or _length(stream) < file.size:
            _receive(file, address, stream)
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
            raise
        return _reason(error)
    return fault(part, file)


def _receive(file: File, address: str, stream: IO[bytes]) -> None:
    start = _length(stream)
    headers = {"User-Agent": f"msda-bench/{__version__}"} | ({"Range": f"bytes={start}-"} if start else {})
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 - the scheme has been checked
    with _opener().open(request, timeout=TIMEOUT) as response:
        held = response.headers.get("Content-Range", "")
        resumes = response.status == _PARTIAL and held.startswith(f"bytes {start}-")
        if start and not resumes:  # the server sends the whole file
            stream.truncate(0)
        most = _LARGEST if file.size is None else file.size
        while _length(stream) <= most and (chunk := response.read(_CHUNK)):
            stream.write(chunk)
            stream.flush()


def _opener() -> urllib.request.OpenerDirector:
    """Opens only http, https and file, also after a redirect; honours the proxies of the environment."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.FileHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


def _length(stream: IO[bytes]) -> int:
    return os.fstat(stream.fileno()).st_size


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason or http.client.responses.get(error.code, '')}".strip()
    if isinstance(error, http.client.HTTPException):  # whose message may be a mere '' or part of the answer
        return describe(error)
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return describe(cause) if isinstance(cause, BaseException) else message_of(error)
