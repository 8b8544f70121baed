"""The one exception that means "tell the user, without a traceback", and how any other is put into words."""

from __future__ import annotations

import signal

_LONGEST = 500
_READ = 20 * _LONGEST


class BenchError(Exception):
    """A mistake that the user can mend. Each item of `lines` is one line: what, where, what to do."""

    exit_code = 2

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines

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
    name = one_line(type.__dict__["__name__"].__get__(type(error)))
    return one_line(f"{name}: {message_of(error, longest)}", longest)


def message_of(error: BaseException, longest: int = _LONGEST) -> str:
    """An exception's message in one line, as `one_line` makes it; its `__str__` may raise whatever it likes."""
    try:
        text = str(error)
    except BaseException as fault:  # noqa: BLE001 - a stranger's exception may raise anything
        pass_interrupt(fault)
        return "its message cannot be read, since its __str__ raises"
    return one_line(text, longest) or "no message"


def one_line(text: str, longest: int = _LONGEST) -> str:
    """Text from outside in one printable line: without control characters, at most `longest` characters."""
    # As methods of `str`, since the text may be of a subclass that overrides them.
    start = str.__getitem__(text, slice(max(_READ, longest)))
    line = " ".join(printable(start).split())
    return line if len(line) <= longest and len(start) == str.__len__(text) else f"{line[: longest - 3]}..."


def printable(text: str) -> str:
    """Text with a space for each character that would steer a terminal or break a line."""
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
