"""Prints text, and is the one place where it is cleaned, so that none can control the terminal."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import TextIO

from msda_bench.errors import printable
from msda_bench.streams import StandIn

_LONGEST = 20_000
"""The maximum length of a line: enough for the names of all domains, too little to fill a disk."""
_BLOCK = 80
_PLAIN_WIDTH = 10_000
"""The line width when a program reads the output, so that each row is one line."""
_STDOUT: ContextVar[TextIO] = ContextVar("stdout")


@contextlib.contextmanager
def own_stdout() -> Iterator[None]:
    """Within the block only the functions here write to stdout; what a plugin prints goes to stderr.

    A program that reads a table, JSON or CSV gets nothing else, whatever a plugin does.
    """
    stdout = sys.stdout
    token = _STDOUT.set(stdout)
    sys.stdout = StandIn(stdout, 1, _aside)
    try:
        yield
    finally:
        sys.stdout = stdout
        _STDOUT.reset(token)


def _aside(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(text)


def out() -> TextIO:
    """The command's stdout."""
    return _STDOUT.get(sys.stdout)


def out_width() -> int:
    """The width of the terminal at the command's stdout."""
    fallback = 80, 24
    with contextlib.suppress(OSError):
        fallback = os.get_terminal_size(out().fileno())
    return shutil.get_terminal_size(fallback).columns


def say(line: str) -> None:
    """Prints a line to stdout at once."""
    print(printable(line, _LONGEST), file=out(), flush=True)


def say_text(text: str) -> None:
    """Prints a text of several lines to stdout, whatever their length."""
    say_whole("\n".join(printable(line, max(len(line), 1)) for line in text.split("\n")) + "\n")


def say_whole(text: str) -> None:
    """Prints a text that is clean already, such as JSON or CSV, as it is."""
    print(text, end="", file=out())


def say_block(head: str, texts: Iterable[str]) -> None:
    """Prints a head and indented texts below it to stdout, in lines of at most 80 characters."""
    for line in textwrap.wrap(head, _BLOCK, subsequent_indent="  ", break_on_hyphens=False):
        say(line)
    for text in texts:
        for line in textwrap.wrap(text, _BLOCK, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False):
            say(line)


def warn(line: str) -> None:
    """Prints a line to stderr."""
    print(f"msda-bench: {printable(line, _LONGEST)}", file=sys.stderr)


def warn_of(lines: Iterable[str], level: str = "warning") -> bool:
    """Prints each different line to stderr once; returns whether there were any."""
    known = dict.fromkeys(lines)
    for line in known:
        warn(f"{level}: {line}")
    return bool(known)


def say_table(heads: Iterable[str], rows: Iterable[Iterable[str]], numbers: Iterable[str] = ()) -> None:
    """Prints a table to stdout, columns of numbers last; if the output is no terminal, each row is one line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def text(cell: str) -> Text:
        return Text(printable(cell, _LONGEST))  # as text, since it may look like markup

    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(text(head))
    for head in numbers:
        table.add_column(text(head), justify="right")
    for row in rows:
        table.add_row(*map(text, row))
    Console(file=out(), width=None if out().isatty() else _PLAIN_WIDTH).print(table)
