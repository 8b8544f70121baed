"""Stand-ins for stdout and stderr: code of a plugin may close, wrap or replace them, and the process keeps its own."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TextIO, cast

from msda_bench.errors import printable

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_NUMBERS = {"stdin": 0, "stdout": 1, "stderr": 2}
_WRITTEN = ("stdout", "stderr", "__stdout__", "__stderr__")
_FIRST_FREE = 3
"""The lowest descriptor for a copy of one of the three."""


class _Forward(io.RawIOBase):
    """Passes bytes on as text; closing it closes nothing else."""

    def __init__(self, stream: TextIO, number: int, write: Callable[[str], object]) -> None:
        super().__init__()
        self.name = f"<{'stderr' if number == _NUMBERS['stderr'] else 'stdout'}>"
        self._stream, self._number, self._write = stream, number, write
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        given = bytes(data)
        self._write(self._decoder.decode(given))
        return len(given)

    def flush(self) -> None:
        super().flush()
        if is_open(self._stream):
            self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        self._stream.fileno()  # raises where there is none, as in a notebook
        return self._number


class StandIn(io.TextIOWrapper):
    """Takes the place of a stream. Whatever is done to it, closing it included, leaves the stream itself as it is.

    Args:
        stream: the stream; its terminal and its other attributes are those of the stand-in, too.
        number: the descriptor that it names as its own, if the stream has one.
        write: gets the text; by default the stream's own.
    """

    def __init__(self, stream: TextIO, number: int, write: Callable[[str], object] | None = None) -> None:
        self._stream = stream
        raw = _Forward(stream, number, write or stream.write)
        # A TextIOWrapper takes raw streams, too, as with `python -u`.
        super().__init__(raw, "utf-8", "backslashreplace", newline="", write_through=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # such as the mark of rich, by which it finds the terminal


class NamedLines:
    """Writes text to stderr line by line: each line is sanitised, and begins with whose it is."""

    def __init__(self, whose: str) -> None:
        self._whose = whose
        self._stream = sys.stderr
        self._rest = ""

    def write(self, text: str) -> None:
        """Writes what is a whole line now."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._tell(line)

    def end(self) -> None:
        """Writes the rest, which may be no whole line."""
        rest, self._rest = self._rest, ""
        self._tell(rest)

    def _tell(self, line: str) -> None:
        shown = printable(line)
        if shown.strip():
            with contextlib.suppress(OSError):  # the command's own next line fails, too, and is reported
                print(f"msda-bench: {self._whose} printed: {shown}", file=self._stream, flush=True)


@contextlib.contextmanager
def kept(changed: list[str], write: Callable[[str], object] | None = None) -> Iterator[None]:
    """Within the block stdout and stderr are stand-ins: closing, wrapping or replacing them has no effect after it.

    File descriptors 0 to 2 and stdin are put back, too. Only for the main thread, since streams belong to the process.

    Args:
        changed: gets the name of each that the block closed or replaced.
        write: gets what the block writes to stdout and stderr; without it, the text goes where it went before.
    """
    own = {name: getattr(sys, name) for name in (*_WRITTEN, "stdin")}
    given = _stand_ins(own, write)
    copies = {number: _copy(number) for number in _NUMBERS.values()}
    for name, stream in given.items():
        setattr(sys, name, stream)
    try:
        yield
    finally:
        names = [f"file descriptor {number}" for number, copy in copies.items() if not _put_back(number, copy)]
        for name, stream in given.items():
            if getattr(sys, name, None) is not stream or not is_open(stream):
                names.append(f"sys.{name.strip('_')}")
            setattr(sys, name, own[name] if is_open(own[name]) else _opened(name))
        changed.extend(dict.fromkeys(names))


def is_open(stream: Any) -> bool:
    """Whether a stream is there and takes or gives text; one that was detached from its file does not."""
    try:
        return stream is not None and not stream.closed
    except ValueError:
        return False


def _stand_ins(own: Mapping[str, Any], write: Callable[[str], object] | None) -> dict[str, Any]:
    """What takes the place of each stream; a stream that is missing or closed stays, and so does stdin."""
    made: dict[int, StandIn] = {}  # two names may be one stream
    given = {name: stream for name, stream in own.items() if is_open(stream)}
    for name in _WRITTEN:
        if name in given:
            stream = given[name]
            number = _NUMBERS[name.strip("_")]
            given[name] = made.setdefault(id(stream), StandIn(stream, number, write))
    return given


def _opened(name: str) -> TextIO | None:
    """A new stream in place of one that was closed by way of another name."""
    plain = name.strip("_")
    with contextlib.suppress(OSError):
        mode = "r" if plain == "stdin" else "w"
        return cast("TextIO", open(_NUMBERS[plain], mode, errors="backslashreplace", closefd=False))
    return None


def _copy(number: int) -> int | None:
    with contextlib.suppress(OSError):  # it is closed
        return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
    return None


def _put_back(number: int, copy: int | None) -> bool:
    """Closes the copy of a descriptor; if the descriptor is no longer the same file, makes it so and returns False."""
    if copy is None:
        return True
    try:
        same = os.path.sameopenfile(number, copy)
    except OSError:
        same = False
    with contextlib.suppress(OSError):  # the copy was closed
        if not same:
            os.dup2(copy, number)
        os.close(copy)
    return same
