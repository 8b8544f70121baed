"""Finds and reads the files of suites: included ones, and the suites that come with msda-bench by name."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection
from itertools import takewhile
from pathlib import Path, PurePosixPath, PureWindowsPath

import yaml  # type: ignore[import-untyped, unused-ignore]

from msda_bench.errors import SuiteError

MAX_BYTES = 250_000
_ENDINGS = {".yaml", ".yml"}
_SOME = 5
_ALIKE = 0.7
"""Higher than difflib's usual 0.6: short names in several folders are similar by chance."""


class UnreadableError(Exception):
    """The reason why a file cannot be read, in words that follow its name."""


def read_bytes(path: Path, names: Collection[str] = ()) -> bytes:
    """The content of a file of at most 250 kB; for a missing file, `names` are possible corrections."""
    try:
        if path.is_dir():
            raise UnreadableError(_folder(path))
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


def _folder(path: Path) -> str:
    inside = [suite.name for suite in _suites(path)]
    if not inside:
        return "is a folder without suites; name a file, such as mine.yaml"
    more = ", ..." if len(inside) > _SOME else ""
    return f"is a folder; name a suite in it ({', '.join(inside[:_SOME])}{more})"


def included(name: str, folder: Path, top: Path, seen: Collection[str] = ()) -> Path:
    """The file of `include: [name]` in a file of the folder; it must lie below the top folder and be new."""
    if PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive:
        raise UnreadableError("must be relative to the file that includes it, not absolute")
    # pathlib's resolve raises on a loop of links in some Python versions.
    real = os.path.realpath(folder / name)
    if not Path(real).is_relative_to(os.path.realpath(top)):
        raise UnreadableError("leaves the folder of the suite; move the file into it")
    if real in seen:
        raise UnreadableError("is already included, or includes itself indirectly")
    return folder / name


def _near(path: Path, names: Collection[str]) -> str:
    """A suggestion for a misspelt suite: a similar name in or next to its folder, or among `names`."""
    folder = path.parent if path.parent.is_dir() else path.parent.parent
    suites = [*_suites(folder), *_suites(folder, "[!.]*/*")]
    # The first of equal names stays.
    known = {name: name for name in names} | {suite.stem: str(suite) for suite in reversed(suites)}
    wanted = path.stem if path.suffix in _ENDINGS else path.name
    if inside := [name for name in names if name.endswith(f"/{path}")]:
        return f" (did you mean {' or '.join(map(repr, inside))}?)"
    close = difflib.get_close_matches(wanted, known, n=1, cutoff=_ALIKE)
    if close:
        return f" (did you mean {known[close[0]]!r}?)"
    return "; `msda-bench suites list` shows the suites that have names" if names and not path.suffix else ""


def _suites(folder: Path, pattern: str = "*") -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.suffix in _ENDINGS)


def home() -> Path:
    """The folder of these suites: in the package if a wheel was installed, next to it in a clone."""
    package = Path(__file__).parents[1]
    inside = package / "suites"
    return inside if inside.is_dir() else package.parent / "suites"


def names() -> tuple[str, ...]:
    """The names of all of them, including suites that others include; those in folders come last."""
    folder = home()
    suites = (path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))
    return tuple(sorted(suites, key=lambda name: ("/" in name, name)))


def offered_names() -> tuple[str, ...]:
    """The names to choose from: without those in folders, which others include."""
    parts = {path for name in names() for path in files_of(shipped(name))[1:]}
    return tuple(name for name in names() if "/" not in name or shipped(name) not in parts)


def shipped(name: str) -> Path:
    """The file of a suite by name."""
    return home() / f"{name}.yaml"


def find_suite(given: str | Path) -> Path:
    """The file that a path or a name means: a file at that very path comes first, then a suite of that name.

    The loader reports paths that cannot be read, with a suggestion.

    Raises:
        SuiteError: it names a suite, but a file with that name and `.yaml` also exists here.
    """
    path = Path(given)
    if path.as_posix() not in names() or (path.exists() and not path.is_dir()):
        return path
    suite, beside = shipped(path.as_posix()), path.with_name(f"{path.name}.yaml")
    if beside.exists() and not beside.samefile(suite):
        raise SuiteError(
            f"{path}: is a suite that comes with msda-bench, and {beside} is another one here; write {beside} to use "
            f"the file, or {suite} to use the other"
        )
    return suite


def files_of(suite: Path) -> tuple[Path, ...]:
    """One of these suites, then the files that it includes, directly or not."""
    text = suite.read_text(encoding="utf-8")
    # Most include none, and to parse them all takes seconds.
    included = yaml.safe_load(text)["include"] if re.search("^include:", text, re.MULTILINE) else ()
    return (suite, *(file for name in included for file in files_of(suite.parent / name)))


def purpose(suite: Path) -> str:
    """The purpose of a suite: the first sentence of the comment at its beginning."""
    lines = takewhile(lambda line: line.startswith("#"), suite.read_text(encoding="utf-8").splitlines())
    words = " ".join(line.removeprefix("#").strip() for line in lines)
    return re.split(r"(?<=\.) (?=[A-Z])", words)[0]
