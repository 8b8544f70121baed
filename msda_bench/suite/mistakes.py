"""Mistakes in a suite file: where each one is, and how it is told."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from msda_bench.errors import describe

Loc: TypeAlias = tuple[str | int, ...]
"""Where a value is: keys of mappings and indices of lists, from the top."""
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LONGEST = 60
_LINE = 1000
_MOST_KNOWN = 20


class Mark(NamedTuple):
    """A place in a file; both numbers start at 1."""

    line: int
    column: int


class Mistake(NamedTuple):
    """One mistake; ordered by its place in the file."""

    mark: Mark
    loc: Loc
    what: str

    def line(self, file: str) -> str:
        """`file:line:column: dotted.path: what`, without the path for the file as a whole."""
        path = f"{dotted(self.loc)}: " if self.loc else ""
        return f"{file}:{self.mark.line}:{self.mark.column}: {_clipped(path + self.what)}"


def _clipped(text: str) -> str:
    return text if len(text) <= _LINE else f"{text[: _LINE // 2]} ... {text[-_LINE // 2 :]}"


def dotted(loc: Loc) -> str:
    """A location as text, such as `methods.DARN.mu` or `targets[2]`."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{shown(part)}]"
    return text


def shown(value: Any) -> str:
    """A value as it would be written in a suite, on one line and not long."""
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]}...{text[-1]}"


def reason(error: BaseException) -> str:
    """What a stranger's code raised, on one line."""
    return describe(error)


def hint(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or what there is to choose from when nothing is close."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1)
    if close:
        return f" (did you mean {shown(close[0])}?)"
    listed = ", ".join(names[:_MOST_KNOWN]) + (", ..." if len(names) > _MOST_KNOWN else "")
    return f" (known: {listed})" if names else ""
