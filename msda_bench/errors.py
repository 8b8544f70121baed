"""User-facing errors, and the sanitising of untrusted text."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

LONGEST_LINE = 8000
"""Characters of a line that is shown; paths may be long."""
_LONGEST = 500
_READ = 20 * _LONGEST


def printable(text: object, most: int = _LONGEST) -> str:
    """Text from a plan, record, plugin, exception or server as one line that a terminal or file can hold.

    Control and escape characters, bidirectional overrides, line breaks and lone surrogates become a space, since a
    terminal obeys them.

    Args:
        text: whatever it is, as `str` writes it.
        most: characters to keep; longer text ends in "...".
    """
    whole = str(text)
    line = whole[: max(_READ, most)]
    is_cut = len(line) < len(whole)
    if not line.isprintable():
        marked = "".join(char if char.isprintable() else "\n" for char in line)
        line = re.sub(r"\s*\n\s*", " ", marked).strip()
    if is_cut or len(line) > most:
        return f"{line[: max(most - 3, 0)]}..."
    return line


class BenchError(Exception):
    """A mistake that the user can fix. Each item of `lines` is one printable line: what, where, what to do."""

    exit_code = 2

    def __init__(self, *lines: str) -> None:
        self.lines = tuple(printable(line, LONGEST_LINE) for line in lines)
        super().__init__("\n".join(self.lines))

    def __reduce__(self) -> tuple[type[BenchError], tuple[str, ...]]:
        return type(self), self.lines


class SuiteError(BenchError):
    """A suite file that cannot be used; one line per mistake, each `file:line:column: path: what`."""


class PluginError(BenchError):
    """A component that is unknown, broken, colliding, or breaks its contract."""


class BlamedError(PluginError):
    """What a plugin raised, in a line that names its author's own; `__cause__` is the exception."""


class DivergedError(PluginError):
    """A fit whose numbers are not finite or did not converge: the run is recorded as diverged, with this line."""


class DataError(BenchError):
    """A data file that is missing, truncated, of the wrong checksum, or not what its format promises."""


class StoreError(BenchError):
    """A result folder that cannot be read or written."""


class Interrupted(KeyboardInterrupt):
    """Raised by our own signal handlers alone, so that a plugin's own KeyboardInterrupt is not taken for Ctrl-C."""


@contextlib.contextmanager
def reported(lines: list[str]) -> Iterator[None]:
    """Adds to these lines those of a mistake in the block, which ends there."""
    try:
        yield
    except BenchError as error:
        lines.extend(error.lines)


def describe(error: BaseException, longest: int = _LONGEST) -> str:
    """`<type>: <message>` in one line; see `message_of`."""
    return printable(f"{type(error).__name__}: {message_of(error, longest)}", longest)


def message_of(error: BaseException, longest: int = _LONGEST) -> str:
    """An exception's message in one line, as `printable` makes it; a plugin's `__str__` may raise."""
    try:
        return printable(str(error), longest) or "no message"
    except Exception:  # noqa: BLE001 - whatever the author's mistake is
        return "its message cannot be read, since its __str__ raises"
