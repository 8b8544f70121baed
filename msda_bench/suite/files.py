"""A suite's files: reads them, and finds included ones."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection
from pathlib import Path, PurePosixPath, PureWindowsPath

MAX_BYTES = 250_000
_ENDINGS = {".yaml", ".yml"}
_ALIKE = 0.7
"""Higher than difflib's usual 0.6: short names in several folders are similar by chance."""


class UnreadableError(Exception):
    """The reason why a file cannot be read, in words that follow its name."""


def read_bytes(path: Path, names: Collection[str] = ()) -> bytes:
    """The content of a file of at most 250 kB; for a missing file, `names` are possible corrections."""
    try:
        if path.is_dir():
            raise UnreadableError(f"is a folder; name a suite in it{_listed(path)}")
        if path.exists() and not path.is_file():
            raise UnreadableError("is not a regular file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise UnreadableError(f"no such file{_near(path, names)}") from None
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"is larger than {MAX_BYTES} bytes; a suite is a few thousand")
    return data


def included(name: str, folder: Path, top: Path, seen: Collection[str] = ()) -> Path:
    """The file that `include: [name]` means in a file of the folder: below the top one, and none of the seen."""
    if PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive:
        raise UnreadableError("must be relative to the file that includes it, not absolute")
    # realpath, because pathlib's resolve raises on a loop of links in some Python versions.
    if not Path(os.path.realpath(folder / name)).is_relative_to(os.path.realpath(top)):
        raise UnreadableError("leaves the folder of the suite; move the file into it")
    if os.path.realpath(folder / name) in seen:
        raise UnreadableError("is already included, or includes itself indirectly")
    return folder / name


def _near(path: Path, names: Collection[str]) -> str:
    """A suggestion for a misspelt suite: a similar name in or next to its folder, or among `names`."""
    folder = path.parent if path.parent.is_dir() else path.parent.parent
    known: dict[str, str] = {}
    below = [path for path in _content(folder) if path.is_dir() and not path.name.startswith(".")]
    for place in (folder, *below):
        for suite in _suites(place):
            known.setdefault(suite.stem, str(suite))
    for name in names:
        known.setdefault(name, name)
    wanted = path.stem if path.suffix in _ENDINGS else path.name
    close = difflib.get_close_matches(wanted, known, n=1, cutoff=_ALIKE)
    if close:
        return f" (did you mean {known[close[0]]!r}?)"
    return "; `msda-bench suites list` shows the suites that have names" if names and not path.suffix else ""


def _listed(folder: Path) -> str:
    names = [path.name for path in _suites(folder)]
    return f" ({', '.join(names[:5])}{', ...' if len(names) > 5 else ''})" if names else ""  # noqa: PLR2004


def _suites(folder: Path) -> list[Path]:
    return [path for path in _content(folder) if path.suffix in _ENDINGS]


def _content(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
