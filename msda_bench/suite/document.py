"""A suite file as plain values, with the place of every key and value, and what is wrong in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from typing import Any, NamedTuple

from msda_bench.suite.mistakes import Fault, Loc, dotted

_LONGEST_LINE = 1000


class Mark(NamedTuple):
    """A place in a file; both numbers start at 1."""

    line: int
    column: int


TOP = Mark(1, 1)


class Mistake(NamedTuple):
    """One mistake at its place in the file."""

    mark: Mark
    loc: Loc
    what: str

    def line(self, file: str) -> str:
        """`file:line:column: dotted.path: what`, without the path for the file as a whole."""
        text = f"{dotted(self.loc)}: {self.what}" if self.loc else self.what
        if len(text) > _LONGEST_LINE:
            text = f"{text[: _LONGEST_LINE // 2]} ... {text[-_LONGEST_LINE // 2 :]}"
        return f"{file}:{self.mark.line}:{self.mark.column}: {text}"


@dataclass
class Document:
    """One file, read: its value, where each key and each value is, and what is wrong in it so far.

    None stands in the place of the values in `spoiled`, which could not be read.
    """

    name: str
    value: Any = None
    keys: dict[Loc, Mark] = field(default_factory=dict)
    values: dict[Loc, Mark] = field(default_factory=dict)
    spoiled: set[Loc] = field(default_factory=set)
    mistakes: list[Mistake] = field(default_factory=list)

    def add(self, fault: Fault) -> None:
        """Notes a mistake, unless it only follows from a value that could not be read."""
        known = self._known(fault.loc)
        loc = known if fault.where == "value" else fault.loc
        if any(loc[:length] in self.spoiled for length in range(len(loc) + 1)):
            return
        # A value that is missing from a mapping is shown at the mapping's own key.
        missing = known != loc and isinstance(reduce(getitem, known, self.value), dict | list)
        places = self.keys if (fault.where == "key" and known == loc) or missing else self.values
        self.mistakes.append(Mistake(places.get(known) or self.values.get(known) or TOP, loc, fault.what))

    def lines(self) -> list[str]:
        """The mistakes in the order of the file, each once."""
        ordered = sorted(self.mistakes, key=lambda mistake: mistake.mark)
        return list(dict.fromkeys(mistake.line(self.name) for mistake in ordered))

    def _known(self, loc: Loc) -> Loc:
        """The longest part of a location that is in the file."""
        while loc and loc not in self.values:
            loc = loc[:-1]
        return loc
