"""Whose code raised: names the author's file and line, or the package that cannot be imported."""

from __future__ import annotations

import importlib.metadata
import sys
import traceback
from collections.abc import Collection, Iterable
from pathlib import Path

from msda_bench.errors import BenchError, describe
from msda_bench.marker import PROJECT

_NEEDED = ("torch", "numpy", "scipy")


def packages_of(distributions: Iterable[str]) -> frozenset[str]:
    """The top-level packages that plugins are loaded from, by their distributions' entry points."""
    return frozenset(package for name in distributions for package in _packages(name))


def package_of(cls: type) -> str:
    """The top-level package that a class comes from."""
    return _package(cls.__module__)


def place(error: BaseException, packages: Collection[str]) -> str | None:
    """Where the error left the code of these packages, as `package/file.py:12`.

    The innermost such frame is the author's own line; those below it are of torch or another library.

    Args:
        error: what was raised.
        packages: names of top-level packages.

    Returns:
        None where no frame is theirs.
    """
    found: str | None = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        package = _package(frame.f_globals.get("__name__"))
        if package in packages:
            found = f"{_below(package, frame.f_code.co_filename)}:{line}"
    return found


def told_by_place(error: BaseException, packages: Collection[str]) -> str:
    """`package/file.py:12: <type>: <message>`, in one line; without the place where no frame is theirs."""
    where = place(error, packages)
    return f"{where}: {describe(error)}" if where else describe(error)


def broken_package(error: BaseException) -> BenchError | None:
    """What to tell where a package that everything needs cannot be imported; None for any other error."""
    involved = [_package(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, ImportError):
        involved.append(_package(error.name))
    for name in reversed(involved):
        # A package whose import failed is no longer among the modules.
        if name in _NEEDED and name not in sys.modules:
            return BenchError(f"{name} cannot be imported, and every run needs it: {describe(error)}; reinstall {name}")
    return None


def _packages(distribution: str) -> list[str]:
    try:
        points = importlib.metadata.distribution(distribution).entry_points
    except Exception:  # noqa: BLE001 - an installation without readable metadata fails in a way of each Python's own
        return []
    return [_package(point.value.partition(":")[0].strip()) for point in points if point.group == PROJECT]


def _package(module: object) -> str:
    return module.partition(".")[0] if isinstance(module, str) else ""


def _below(package: str, file: str) -> str:
    """The path from the package on: what lies above it is this machine's affair."""
    parts = Path(file).parts
    start = len(parts) - 1 - parts[::-1].index(package) if package in parts[:-1] else len(parts) - 1
    return "/".join(parts[start:])
