"""Whose code raised: names the author's file and line, or the package that cannot be imported."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import traceback
from collections.abc import Collection, Iterable
from pathlib import Path
from types import TracebackType

from msda_bench.errors import BenchError, describe, pass_interrupt
from msda_bench.marker import PROJECT

_MOST = 50_000
"""Characters of a traceback that are kept."""
_NEEDED = ("torch", "numpy", "scipy")


def packages_of(distributions: Iterable[str]) -> frozenset[str]:
    """The top-level packages that plugins are loaded from, by their distributions' entry points."""
    return frozenset(package for name in distributions for package in _packages(name))


def package_of(cls: type) -> str:
    """The top-level package that a class comes from."""
    return package(cls.__module__)


def package(module: object) -> str:
    """The top-level package of a module's name, or of an entry point's value (`package.module:attribute`)."""
    return re.split("[.:]", module, maxsplit=1)[0].strip() if isinstance(module, str) else ""


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
    for frame, line in traceback.walk_tb(_traceback(error)):
        name = package(frame.f_globals.get("__name__"))
        if name in packages:
            found = f"{_below(name, frame.f_code.co_filename)}:{line}"
    return found


def describe_with_place(error: BaseException, packages: Collection[str]) -> str:
    """`package/file.py:12: <type>: <message>`, in one line; without the place where no frame is theirs."""
    where = place(error, packages)
    return f"{where}: {describe(error)}" if where else describe(error)


def trace_of(error: BaseException) -> str:
    """The traceback; the beginning and the end of a long one."""
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException as fault:  # noqa: BLE001 - a third-party exception may raise when it is inspected
        pass_interrupt(fault)
        text = f"{''.join(traceback.format_tb(_traceback(error)))}{describe(error)}\n"
    if len(text) > _MOST:
        gap = f"\n... {len(text) - _MOST} characters skipped ...\n"
        text = text[: _MOST // 2] + gap + text[-_MOST // 2 :]
    return text.encode(errors="backslashreplace").decode()


def broken_package(error: BaseException) -> BenchError | None:
    """The error to raise if a package that everything needs cannot be imported; None for any other error."""
    involved = [package(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(_traceback(error))]
    if isinstance(error, ImportError):
        involved.append(package(error.name))
    for name in reversed(involved):
        # A package whose import failed is no longer among the modules.
        if name in _NEEDED and name not in sys.modules:
            return BenchError(f"{name} cannot be imported, and every run needs it: {describe(error)}; reinstall {name}")
    return None


def _traceback(error: BaseException) -> TracebackType | None:
    # The descriptor of `BaseException` itself: a third-party class may override the attribute.
    found: TracebackType | None = BaseException.__dict__["__traceback__"].__get__(error)
    return found


def _packages(distribution: str) -> list[str]:
    try:
        points = importlib.metadata.distribution(distribution).entry_points
    except Exception:  # noqa: BLE001 - an installation without readable metadata fails differently in each Python
        return []
    return [package(point.value) for point in points if point.group == PROJECT]


def _below(package: str, file: str) -> str:
    """The path from the package on, without the folders of this machine above it."""
    parts = Path(file).parts
    start = len(parts) - 1 - parts[::-1].index(package) if package in parts[:-1] else len(parts) - 1
    return "/".join(parts[start:])
