"""A disk that fails: the calls that change files are counted, and one of them is refused."""

import contextlib
import functools
import io
import os
import signal

import pytest

CHANGES = ("fsync", "mkdir", "rename", "replace", "unlink")


class Faulty:
    """Counts calls that change files, by name in `calls`; `refused` is the name of the one that was refused."""

    def __init__(self, code, at):
        self.calls: list[str] = []
        self.refused: str | None = None
        self._code = code
        self._at = at

    def call(self, name, call, *args, **options):
        self.tick(name)
        return call(*args, **options)

    def tick(self, name, half=lambda: None):
        """Counts a call, and refuses the chosen one after half of its work."""
        self.calls.append(name)
        if len(self.calls) == self._at + 1:
            half()
            if self._code is None:
                os.kill(os.getpid(), signal.SIGKILL)
            self.refused = name
            raise OSError(self._code, os.strerror(self._code or 0))

    def write(self, call, handle, data):
        self.tick("write", lambda: call(handle, data[: len(data) // 2]))
        return call(handle, data)

    def open(self, call, file, mode="r", *args, **options):
        if set("xwa+").isdisjoint(mode):
            return call(file, mode, *args, **options)
        self.tick("open")
        return _Stream(self, call(file, mode, *args, **options))


class _Stream:
    """An open file that writes only half the data of a refused write."""

    def __init__(self, faulty, stream):
        self._faulty = faulty
        self._stream = stream

    def write(self, data):
        self._faulty.tick("write", lambda: (self._stream.write(data[: len(data) // 2]), self._stream.flush()))
        return self._stream.write(data)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stream.close()

    def __getattr__(self, name):
        return getattr(self._stream, name)


@contextlib.contextmanager
def faults(code, at):
    """Makes the `at`-th call (from 0) in the block that changes a file fail with this errno; None kills the process."""
    faulty = Faulty(code, at)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "open", functools.partial(faulty.open, io.open))
        patch.setattr(os, "write", functools.partial(faulty.write, os.write))
        for name in CHANGES:
            patch.setattr(os, name, functools.partial(faulty.call, name, getattr(os, name)))
        yield faulty
