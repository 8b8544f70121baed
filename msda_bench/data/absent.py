"""Files that are nowhere on this machine and can be fetched, in one line with what a download takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msda_bench.api import ByHand, File
from msda_bench.data.folders import GIVEN, Folders

_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def absent(files: Iterable[File], where: Folders) -> list[File]:
    """The files that lie in no data folder and that `msda-bench data fetch` can get."""
    return [
        file
        for file in files
        if not isinstance(file.origin, ByHand) and not any(path.exists() for path in where.candidates(file))
    ]


def describe_absent(found: Mapping[str, Iterable[File]], where: Folders) -> str:
    """One line: how many files of which datasets are missing, how large they are, and the command that fetches them.

    Args:
        found: of each dataset the files that are missing.
        where: the data folders.
    """
    files = {name: tuple(dict.fromkeys(some)) for name, some in found.items()}
    every = tuple(dict.fromkeys(file for some in files.values() for file in some))
    each = f" ({'; '.join(f'{name}: {_amount(some)}' for name, some in files.items())})" if len(files) > 1 else ""
    return (
        f"data of {', '.join(files)} are missing: {_amount(every)} to fetch{each}, not in {where}; run `msda-bench "
        f"data fetch {' '.join(files)}`, add --fetch to `run`, or set {GIVEN} to a folder that holds them"
    )


def _amount(files: tuple[File, ...]) -> str:
    known = [file.size for file in files if file.size is not None]
    unknown = len(files) - len(known)
    sizes = [_size(sum(known))] if known else []
    sizes += [f"{unknown} of unknown size" if known else "size unknown"] if unknown else []
    return f"{len(files)} file{'' if len(files) == 1 else 's'}, {' and '.join(sizes)}"


def _size(count: int) -> str:
    return next((f"{count / unit:.1f} {name}" for name, unit in _UNITS if count >= unit), f"{count} bytes")
