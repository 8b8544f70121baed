"""Whose code raised: catches whatever a plugin raises, and names the author's file and line."""

from __future__ import annotations

import contextlib
import importlib.metadata
import inspect
import re
import signal
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from msda_bench.errors import BenchError, BlamedError, Interrupted, describe
from msda_bench.marker import PROJECT

_MOST = 50_000
"""Characters of a traceback that are kept."""
OWN = "msda_bench_own"
"""The package below which Python files of the user's run, so that their lines are named."""
_NEEDED = ("torch", "numpy", "scipy")


@contextlib.contextmanager
def plugin_errors(
    packages: Collection[str], what: str = "", passing: tuple[type[BaseException], ...] = ()
) -> Iterator[None]:
    """Turns whatever the block raises into one line; even SystemExit must not end a command that goes on without it.

    Args:
        packages: the top-level packages whose line is named, those of the plugin that the block calls.
        what: begins the line, as `<what>: <line>`.
        passing: exceptions that pass, like a BenchError and the user's Ctrl-C.

    Raises:
        BlamedError: the block raised anything else.
    """
    try:
        yield
    except BaseException as error:
        # A plain KeyboardInterrupt is the user's only under Python's handler, as in a notebook.
        is_plain = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        of_user = KeyboardInterrupt if is_plain else Interrupted
        if isinstance(error, (BenchError, of_user, *passing)):
            raise
        line = describe_with_place(error, packages)
        raise BlamedError(f"{what}: {line}" if what else line) from error


def cause_of(error: BenchError) -> BaseException:
    """What a plugin raised, of a fault that `plugin_errors` worded; any other error itself."""
    return error.__cause__ or error if isinstance(error, BlamedError) else error


def packages_of(distributions: Iterable[str]) -> frozenset[str]:
    """The top-level packages that plugins are loaded from, by their distributions' entry points, and the user's."""
    named: set[str] = set()
    for name in distributions:
        with contextlib.suppress(Exception):  # without readable metadata it fails differently in each Python
            points = importlib.metadata.distribution(name).entry_points
            named |= {package(point.value) for point in points if point.group == PROJECT}
    return frozenset({*named, OWN})


def package_of(cls: type) -> str:
    """The top-level package that a class comes from."""
    return package(cls.__module__)


def package(module: object) -> str:
    """The top-level package of a module's name, or of an entry point's value (`package.module:attribute`)."""
    return re.split("[.:]", module, maxsplit=1)[0].strip() if isinstance(module, str) else ""


def place(error: BaseException, packages: Collection[str]) -> str | None:
    """Where the error left the code of these packages, as `package/file.py:12`; None where no frame is theirs.

    The innermost such frame is the author's own line; those below it are of torch or another library.
    """
    innermost: str | None = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = package(frame.f_globals.get("__name__"))
        if name in packages:
            innermost = f"{_below(name, frame.f_code.co_filename)}:{line}"
    return innermost


def line_of(function: Callable[..., object]) -> str:
    """Where a function of a plugin is written, as `package/file.py:12`."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    name = package(function.__module__)
    return f"{_below(name, code.co_filename)}:{code.co_firstlineno}" if code else name


def describe_with_place(error: BaseException, packages: Collection[str]) -> str:
    """`package/file.py:12: <type>: <message>`, in one line; without the place where no frame is theirs."""
    where = place(error, packages)
    return f"{where}: {describe(error)}" if where else describe(error)


def trace_of(error: BaseException) -> str:
    """The traceback; the beginning and the end of a long one."""
    text = "".join(traceback.format_exception(error))
    if len(text) > _MOST:
        gap = f"\n... {len(text) - _MOST} characters skipped ...\n"
        text = text[: _MOST // 2] + gap + text[-_MOST // 2 :]
    return text.encode(errors="backslashreplace").decode()


def broken_package(error: BaseException) -> BenchError | None:
    """The error to raise if a package that everything needs cannot be imported; None for any other error."""
    involved = [package(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, ImportError):
        involved.append(package(error.name))
    for name in reversed(involved):
        # A package whose import failed is no longer among the modules.
        if name in _NEEDED and name not in sys.modules:
            return BenchError(f"{name} cannot be imported, and every run needs it: {describe(error)}; reinstall {name}")
    return None


def _below(package: str, file: str) -> str:
    """The path from the package on, without the folders of this machine above it."""
    parts = Path(file).parts
    start = len(parts) - 1
    if package in parts[:-1]:
        start -= parts[::-1].index(package)
    return "/".join(parts[start:])
