"""The data folders (the user's own, then the cache), and the files that are in neither."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from msda_bench.api import ByHand, File
from msda_bench.atomic import cache_folder
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


def placing(file: File, origin: ByHand) -> str:
    """How the user provides a file that cannot be downloaded."""
    place = f"{origin.why}; place it yourself below a folder named by {GIVEN}"
    if file.checksum is None:
        return f"{place}, and give its sha256 in the suite"
    size = "" if file.size is None else f"{file.size} bytes, "
    return f"{place} ({size}{file.checksum})"


def absent(files: Iterable[File], where: Folders) -> list[File]:
    """The files that are in no data folder and that `msda-bench data fetch` can fetch."""
    return [
        file
        for file in files
        if not isinstance(file.origin, ByHand) and not any(path.exists() for path in where.candidates(file))
    ]


def describe_absent(missing: Mapping[str, Iterable[File]], where: Folders, *, by_name: bool = True) -> str:
    """One line on each dataset's missing files: how many, how large, and the command that fetches them.

    Args:
        missing: the missing files by the name of their dataset or backbone.
        where: the data folders.
        by_name: whether `msda-bench data fetch` fetches them by these names alone, without a suite's parameters.
    """
    files = {name: tuple(dict.fromkeys(some)) for name, some in missing.items()}
    every = tuple(dict.fromkeys(file for some in files.values() for file in some))
    parts = f" ({'; '.join(f'{name}: {_amount(some)}' for name, some in files.items())})" if len(files) > 1 else ""
    command = f"run `msda-bench data fetch {' '.join(files)}`, " if by_name else ""
    return (
        f"data of {', '.join(files)} are missing: {_amount(every)} to fetch{parts}, not in {where}; "
        f"{command}add --fetch to `run`, or set {GIVEN} to a folder that holds them"
    )


def _amount(files: tuple[File, ...]) -> str:
    known = [file.size for file in files if file.size is not None]
    unknown = len(files) - len(known)
    sizes = [_size(sum(known))] if known else []
    sizes += [f"{unknown} of unknown size" if known else "size unknown"] if unknown else []
    return f"{len(files)} file{'' if len(files) == 1 else 's'}, {' and '.join(sizes)}"


def _size(count: int) -> str:
    return next((f"{count / unit:.1f} {name}" for name, unit in _UNITS if count >= unit), f"{count} bytes")


def _below(folder: Path, file: File) -> Path:
    path = PurePosixPath(file.path)
    if path.is_absolute() or not path.parts or ".." in path.parts or set("\\:\0") & set(file.path):
        raise DataError(f"{file.path!r}: leads out of the data folder; the dataset's author must name files below it")
    return folder.joinpath(*path.parts)
