"""The one exception that means "tell the user, without a traceback", and text from outside made fit to show."""

from __future__ import annotations

LONGEST_LINE = 2000
"""Characters of a line that is shown; paths may be long."""


def printable(text: object, most: int = 200) -> str:
    """Text from a plan, record, plugin, exception or server as one line that a terminal or file can hold.

    Each control or escape character, bidirectional override, line break and lone surrogate becomes a space, since a
    terminal obeys them.

    Args:
        text: whatever it is, as `str` writes it.
        most: characters to keep; longer text ends in "...".
    """
    line = str(text)
    line = line if len(line) <= most else f"{line[: max(most - 3, 0)]}..."
    return line if line.isprintable() else "".join(char if char.isprintable() else " " for char in line)


class BenchError(Exception):
    """A mistake that the user can mend. Each item of `lines` is one printable line: what, where, what to do."""

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
