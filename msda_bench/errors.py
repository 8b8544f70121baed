"""The one exception that means "tell the user, without a traceback"."""

from __future__ import annotations


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
