"""A disk that fails: the calls that change files are counted, and one of them is refused."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterator
from typing import IO, Any, Self

import pytest

CHANGES = ("fsync", "link", "mkdir", "rename", "replace", "unlink")


class Faulty:
    """Counts calls that change files.

    Attributes:
        calls: the name of each so far.
        refused: the name of the one that was refused; None if none was.
    """

    def __init__(self, code: int, at: int) -> None:
        self.calls: list[str] = []
        self.refused: str | None = None
        self._code = code
        self._at = at

    def tick(self, name: str) -> None:
        """Counts a call, and refuses the chosen one."""
        self.calls.append(name)
        if len(self.calls) == self._at + 1:
            self.refused = name
            raise OSError(self._code, os.strerror(self._code))

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Wraps a call so that it is counted."""

        def counted(*args: Any, **options: Any) -> Any:
            self.tick(name)
            return call(*args, **options)

        return counted

    def opener(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`open` that counts opening for writing and every write."""

        def opened(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            if not set("xwa+") & set(mode):
                return call(file, mode, *args, **options)
            self.tick("open")
            return _Stream(self, call(file, mode, *args, **options))

        return opened


class _Stream:
    """An open file that writes only half the data of a refused write."""

    def __init__(self, faulty: Faulty, stream: IO[Any]) -> None:
        self._faulty = faulty
        self._stream = stream

    def write(self, data: Any) -> int:
        try:
            self._faulty.tick("write")
        except OSError:
            self._stream.write(data[: len(data) // 2])
            raise
        return self._stream.write(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def faults(code: int, at: int) -> Iterator[Faulty]:
    """Makes the `at`-th call (from 0) in the block that changes a file fail with this errno."""
    faulty = Faulty(code, at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "open", faulty.opener(io.open))
        for name in CHANGES:
            patch.setattr(os, name, faulty.wrap(name, getattr(os, name)))
        yield faulty
