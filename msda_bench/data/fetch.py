"""Puts a dataset's files into the cache: the only place that reaches the network, and only when asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from msda_bench.api import ByHand, File, Sdist, Url
from msda_bench.cache import REMEDY
from msda_bench.data.check import fault
from msda_bench.data.files import LocalFiles
from msda_bench.data.folders import GIVEN, Folders, folders
from msda_bench.data.sdist import download_sdist
from msda_bench.data.url import download_url
from msda_bench.errors import DataError


def fetch(files: Iterable[File], where: Folders | None = None, report: Callable[[str], None] | None = None) -> None:
    """Fetches the files that are missing or have wrong bytes; a file that fails does not stop the others.

    Writes only to the cache of `where`, by default the environment's folders. `report` gets a line before and after
    each download.

    Raises:
        DataError: one line for each file that could not be fetched.
    """
    found = folders() if where is None else where
    notify = report or (lambda _: None)
    problems: list[str] = []
    for file in files:
        if isinstance(file.origin, ByHand):
            problems.extend(_unplaced(file, found))
            continue
        if any(fault(path, file) is None for path in found.candidates(file)):
            continue
        notify(f"fetching {file.path}" + ("" if file.size is None else f" ({file.size / 1e6:.1f} MB)"))
        try:
            _download(file, file.origin, found.cached(file), notify)
        except DataError as error:
            otherwise = f"try again, or put the file ({file.checksum}) below a folder named by {GIVEN}"
            problems.extend(f"{line}; {otherwise}" for line in error.lines)
        except OSError as error:
            why = error.strerror or str(error)
            problems.append(f"{found.cached(file)}: cannot be written: {why}; {REMEDY}")
        else:
            notify(f"fetched {file.path}")
    if problems:
        raise DataError(*problems)


def _unplaced(file: File, found: Folders) -> tuple[str, ...]:
    try:
        LocalFiles(found).path(file)
    except DataError as error:
        return error.lines
    return ()


def _download(file: File, origin: Url | Sdist, path: Path, report: Callable[[str], None]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(origin, Sdist):
        download_sdist(file, origin, path)
    else:
        download_url(file, origin, path, report)
