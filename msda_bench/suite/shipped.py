"""The suites that come with msda-bench, each by its name: `quickstart`, `stress/leave-out`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import yaml  # type: ignore[import-untyped, unused-ignore]

from msda_bench.errors import SuiteError

_ENDING = ".yaml"


def home() -> Path:
    """The folder of these suites: in the package if a wheel was installed, next to it in a clone."""
    package = Path(__file__).parents[1]
    inside = package / "suites"
    return inside if inside.is_dir() else package.parent / "suites"


def names() -> tuple[str, ...]:
    """The names of all of them, including suites that others include; those in folders come last."""
    folder = home()
    found = (path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob(f"*{_ENDING}"))
    return tuple(sorted(found, key=lambda name: ("/" in name, name)))


def listed() -> tuple[str, ...]:
    """The names to choose from: without those in folders, which others include."""
    parts = {path for name in names() for path in files_of(shipped(name))[1:]}
    return tuple(name for name in names() if "/" not in name or shipped(name) not in parts)


def shipped(name: str) -> Path:
    """The file of a suite by name."""
    return home() / f"{name}{_ENDING}"


def find_suite(given: str | Path) -> Path:
    """The file that a path or a name means: a file at that very path comes first, then a suite of that name.

    The loader reports paths that cannot be read, with a suggestion.

    Raises:
        SuiteError: it names a suite, but a file with that name and `.yaml` also exists here.
    """
    path = Path(given)
    if path.as_posix() not in names() or (path.exists() and not path.is_dir()):
        return path
    found, beside = shipped(path.as_posix()), path.with_name(f"{path.name}{_ENDING}")
    if beside.exists() and not beside.samefile(found):
        raise SuiteError(
            f"{path}: is a suite that comes with msda-bench, and {beside} is another one here; write {beside} to use "
            f"the file, or {found} to use the other"
        )
    return found


def files_of(suite: Path) -> tuple[Path, ...]:
    """One of these suites, then the files that it includes, directly or not."""
    return tuple(_files(suite))


def _files(suite: Path) -> Iterator[Path]:
    yield suite
    for name in yaml.safe_load(suite.read_text(encoding="utf-8")).get("include", ()):
        yield from _files(suite.parent / name)


def purpose(suite: Path) -> str:
    """The purpose of one of these suites: the first sentence of the comment at its beginning."""
    lines = takewhile(lambda line: line.startswith("#"), suite.read_text(encoding="utf-8").splitlines())
    words = " ".join(line.removeprefix("#").strip() for line in lines)
    return re.split(r"(?<=\.) (?=[A-Z])", words)[0]
