"""The one exception that means "show the user a line, without a traceback", and text from outside made fit to show."""

from __future__ import annotations

import re
import signal

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
    whole = text if isinstance(text, str) else str(text)
    # As methods of `str`, since the text may be of a subclass that overrides them.
    line = str.__getitem__(whole, slice(max(_READ, most)))
    if not line.isprintable():
        line = re.sub(r"\s*\n\s*", " ", "".join(char if char.isprintable() else "\n" for char in line)).strip()
    return line if len(line) <= most and str.__len__(whole) <= max(_READ, most) else f"{line[: max(most - 3, 0)]}..."


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


class DataError(BenchError):
    """A data file that is missing, truncated, of the wrong checksum, or not what its format promises."""


class StoreError(BenchError):
    """A result folder that cannot be read or written."""


class Interrupted(KeyboardInterrupt):
    """Raised by our own signal handlers alone, so that a plugin's own KeyboardInterrupt is not taken for Ctrl-C."""


def pass_interrupt(error: BaseException) -> None:
    """Raises the error again if it is the user's Ctrl-C; for whoever catches whatever a plugin raises.

    A plain KeyboardInterrupt counts as Ctrl-C only under Python's own handler, as in a notebook, which raises the same.
    """
    # By its type, since `isinstance` asks a `__class__` that may be the plugin's own.
    if issubclass(type(error), Interrupted):
        raise error
    if issubclass(type(error), KeyboardInterrupt) and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        raise error


def describe(error: BaseException, longest: int = _LONGEST) -> str:
    """`<type>: <message>` in one line, of any exception, whatever its class does; see `message_of`."""
    # The descriptor of `type` itself: a metaclass may have a `__name__` of its own that raises.
    name = printable(type.__dict__["__name__"].__get__(type(error)))
    return printable(f"{name}: {message_of(error, longest)}", longest)


def message_of(error: BaseException, longest: int = _LONGEST) -> str:
    """An exception's message in one line, as `printable` makes it; its `__str__` may raise whatever it likes."""
    try:
        text = str(error)
    except BaseException as fault:  # noqa: BLE001 - a stranger's exception may raise anything
        pass_interrupt(fault)
        return "its message cannot be read, since its __str__ raises"
    return printable(text, longest) or "no message"
