"""The data folders (the user's own, then the cache), and the files in them, each checked before it is used."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import loky
import numpy as np

from msda_bench.api import Array, ByHand, File, Rows
from msda_bench.atomic import blocked, cache_folder, owner_lives, read_cache, unfinished, write_cache
from msda_bench.data.checksums import fault
from msda_bench.data.rows import remove_if_damaged, rows_in
from msda_bench.errors import DataError

GIVEN = "MSDA_BENCH_DATA"
_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


@dataclass(frozen=True)
class Folders:
    """The two data folders; a file has the same path in both."""

    given: Path | None
    """Named by MSDA_BENCH_DATA and never written to."""
    cache: Path
    """Holds fetched files and derived arrays; it need not exist yet."""

    def candidates(self, file: File) -> tuple[Path, ...]:
        """Possible places of the file, in the order in which they are searched."""
        given = () if self.given is None else (_below(self.given, file),)
        return (*given, self.cached(file))

    def cached(self, file: File) -> Path:
        """The file's place in the cache."""
        return _below(self.cache, file)

    def __str__(self) -> str:
        given = "" if self.given is None else f"{GIVEN} ({self.given}) or "
        return f"{given}the cache ({self.cache})"


def folders() -> Folders:
    """The folders that the environment names; raises DataError if MSDA_BENCH_DATA is not a folder."""
    given = os.environ.get(GIVEN)
    if given and not Path(given).is_dir():
        raise DataError(f"{GIVEN}: {given} is not a folder; correct the variable or unset it")
    return Folders(Path(given).absolute() if given else None, cache_folder())


def absent(files: Iterable[File], where: Folders) -> list[File]:
    """The files that are in no data folder and that `msda-bench data fetch` can fetch."""
    found = []
    for file in files:
        if isinstance(file.origin, ByHand):
            continue
        if not any(path.exists() for path in where.candidates(file)):
            found.append(file)
    return found


def describe_absent(missing: Mapping[str, Iterable[File]], where: Folders, *, by_name: bool = True) -> str:
    """One line on each dataset's missing files: how many, how large, and the command that fetches them.

    Args:
        missing: the missing files by the name of their dataset or backbone.
        where: the data folders.
        by_name: whether `msda-bench data fetch` fetches them by these names alone, without a suite's parameters.
    """
    files = {name: tuple(dict.fromkeys(some)) for name, some in missing.items()}
    every = tuple(dict.fromkeys(file for some in files.values() for file in some))
    parts = ""
    if len(files) > 1:
        each = [f"{name}: {_amount(some)}" for name, some in files.items()]
        parts = f" ({'; '.join(each)})"
    command = f"run `msda-bench data fetch {' '.join(files)}`, " if by_name else ""
    return (
        f"data of {', '.join(files)} are missing: {_amount(every)} to fetch{parts}, not in {where}; "
        f"{command}add --fetch to `run`, or set {GIVEN} to a folder that holds them"
    )


def _amount(files: tuple[File, ...]) -> str:
    known = [file.size for file in files if file.size is not None]
    unknown = len(files) - len(known)
    sizes = []
    if known:
        sizes.append(_size(sum(known)))
    if unknown:
        sizes.append(f"{unknown} of unknown size" if known else "size unknown")
    plural = "" if len(files) == 1 else "s"
    return f"{len(files)} file{plural}, {' and '.join(sizes)}"


def _size(count: int) -> str:
    for name, unit in _UNITS:
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} bytes"


def _below(folder: Path, file: File) -> Path:
    path = PurePosixPath(file.path)
    if path.is_absolute() or not path.parts or ".." in path.parts or set("\\:\0") & set(file.path):
        raise DataError(f"{file.path!r}: leads out of the data folder; the dataset's author must name files below it")
    return folder.joinpath(*path.parts)


class LocalFiles:
    """Implements `msda_bench.api.Files` over the data folders; reaches no network.

    Args:
        where: the data folders; None for those of the environment.
        dataset: name of the dataset, for messages.
        processes: the number that make rows; None for the cores that this process may use, 0 to read existing rows
        only.
    """

    def __init__(self, where: Folders | None = None, dataset: str = "NAME", processes: int | None = None) -> None:
        self._processes = loky.cpu_count() if processes is None else processes
        self._folders = folders() if where is None else where
        self._dataset = dataset
        self._checked: dict[File, Path] = {}
        self._warned = False

    def path(self, file: File) -> Path:
        """The first local copy whose bytes are right; the bytes are read once for each instance."""
        if file not in self._checked:
            self._checked[file] = self._find(file)
        return self._checked[file]

    def derived(self, name: str, make: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
        """Arrays that `make` makes once, kept in the cache under `name`, which must identify all that they depend on.

        A damaged file in the cache is made again. If the cache cannot be written, the arrays are made each time, and
        one warning reports it.

        Raises:
            ValueError: an array holds Python objects.
        """
        path = self._folders.cache / "derived" / _file_name(name)
        cached = _read(path)
        if cached is not None:
            return cached
        arrays = {key: np.asarray(value) for key, value in make().items()}
        error = write_cache(path, _packed(arrays))
        if error is not None and not self._warned:
            text = "cannot keep derived data in %s (%s); they are made again each time"
            logging.getLogger(__name__).warning(text, path.parent, error.strerror)
            self._warned = True
        return arrays

    def rows(self, name: str, rows: Rows) -> Array:
        """An array of bytes that several processes make once."""
        path = (self._folders.cache / "derived" / _file_name(name)).with_suffix(".npy")
        return rows_in(path, rows, self._processes)

    def _find(self, file: File) -> Path:
        faults: list[tuple[Path, str]] = []
        for path in self._folders.candidates(file):
            reason = fault(path, file, self._folders.cache / "derived" / "checksums")
            if reason is None:
                return path
            if reason != "missing":
                faults.append((path, reason))
        fetch = f"`msda-bench data fetch {self._dataset}`"
        if faults:
            path, reason = faults[0]
            if file.checksum is None:
                raise DataError(f"{path}: {reason}; if it is the right file, give its checksum in the suite")
            other = "" if isinstance(file.origin, ByHand) else f", or let {fetch} put a right copy in the cache"
            raise DataError(f"{path}: {reason}; replace it{other}")
        if isinstance(file.origin, ByHand):
            place = f"{file.origin.why}; place it yourself below a folder named by {GIVEN}"
            size = "" if file.size is None else f"{file.size} bytes, "
            known = f" ({size}{file.checksum})" if file.checksum else ", and give its sha256 in the suite"
            raise DataError(f"{file.path}: not in {self._folders}: {place}{known}")
        raise DataError(
            f"{file.path}: not in {self._folders}; run {fetch}, add --fetch to `run`, or set {GIVEN} to a folder that "
            "holds it"
        )


def verify_arrays(where: Folders) -> Iterator[tuple[str, str]]:
    """Path below the cache and state, "ok" or a fault, of each array that is kept there; all their bytes are read.

    A damaged one is removed, so that it is made again, and so are unfinished files of processes that are gone; those of
    processes of which nothing is known here are named.
    """
    for path in _left_elsewhere(where):
        yield path.relative_to(where.cache).as_posix(), f"ok, but is being written{blocked(path)}"
    for path in sorted((where.cache / "derived").glob("*")):
        if path.suffix not in {".arrays", ".npy"}:
            continue
        state = "ok"
        try:
            if path.suffix == ".npy":
                damaged = remove_if_damaged(path)
            elif damaged := _read(path) is None:
                path.unlink()
            if damaged:
                state = "damaged: its bytes have no right checksum; removed, and made again when needed"
        except OSError as error:
            state = f"damaged, and cannot be removed ({error.strerror}); remove it, and it is made again when needed"
        yield path.relative_to(where.cache).as_posix(), state


def _left_elsewhere(where: Folders) -> Iterator[Path]:
    """The unfinished files of unknown processes; removes those of processes that have ended."""
    for path in sorted(unfinished(where.cache)):
        lives = owner_lives(path.name)
        if lives is None:
            yield path
        elif not lives:
            with contextlib.suppress(OSError):  # such as a file of another user
                path.unlink()


def _file_name(name: str) -> str:
    readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.")[:60]
    return f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:24]}.arrays"


def _packed(arrays: Mapping[str, Array]) -> bytes:
    if any(array.dtype.hasobject for array in arrays.values()):
        raise ValueError("derived arrays must not hold Python objects")  # they would need pickle to be read back
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # numpy's stub takes `allow_pickle` for one of the arrays
    return buffer.getvalue()


def _read(path: Path) -> dict[str, Array] | None:
    """The arrays kept at `path`, an npz archive. None when absent or damaged."""
    content = read_cache(path)
    if content is None:
        return None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):  # not an archive, although its checksum is right
        return None
