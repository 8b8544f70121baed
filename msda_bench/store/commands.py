"""The commands that made a result folder: commands.txt, one a line, in the order in which they were first given."""

from __future__ import annotations

import errno
import shlex
from collections.abc import Sequence
from pathlib import Path

from msda_bench.store.files import append, named, read_file

COMMANDS = "commands.txt"
LIMIT = 1 << 20
"""The maximum size of the file in bytes."""


def keep_command(folder: Path, words: Sequence[str]) -> None:
    """Adds a command to those of a result folder, unless it is listed; several machines may do this at once.

    Raises:
        StoreError: the file cannot be read or written.
    """
    keep_lines(folder, [shlex.join(["msda-bench", *words])])


def keep_lines(folder: Path, lines: Sequence[str]) -> None:
    """As `keep_command`, for commands as `read_commands` returns them."""
    path = folder / COMMANDS
    with named(path, "cannot be written"):
        before = _read(path)
        known = set(_lines(before))
        new = [line for line in dict.fromkeys(map(_printable, lines)) if line not in known]
        data = "".join(f"{line}\n" for line in new).encode(errors="replace")
        if len(before) + len(data) > LIMIT:
            raise OSError(errno.EFBIG, f"it would have more than {LIMIT} bytes; move it away")
        if new:
            append(path, data)


def read_commands(folder: Path) -> tuple[str, ...]:
    """The commands of a folder, each once; empty if none were kept.

    Raises:
        StoreError: the file cannot be read, has more than `LIMIT` bytes, or is not a regular file, such as a link.
    """
    path = folder / COMMANDS
    with named(path, "cannot be read"):
        return _lines(_read(path))


def _read(path: Path) -> bytes:
    try:
        return read_file(path, LIMIT)
    except FileNotFoundError:
        return b""


def _lines(data: bytes) -> tuple[str, ...]:
    text = data.decode(errors="replace")
    return tuple(dict.fromkeys(_printable(line) for line in text.split("\n") if line))


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in line)
