"""A suite file as plain values, with the place of every key and value, and what is wrong in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msda_bench.suite.mistakes import Loc, Mark, Mistake

TOP = Mark(1, 1)


@dataclass
class Document:
    """One file, read.

    Attributes:
        name: the file, as messages call it.
        value: its content as dict, list, str, int, float, bool and None.
        keys: where each key of a mapping is.
        values: where each value is.
        spoiled: values that could not be read; None stands in their place.
        mistakes: what was wrong in it so far.
    """

    name: str
    value: Any = None
    keys: dict[Loc, Mark] = field(default_factory=dict)
    values: dict[Loc, Mark] = field(default_factory=dict)
    spoiled: set[Loc] = field(default_factory=set)
    mistakes: list[Mistake] = field(default_factory=list)

    def add(self, loc: Loc, what: str, *, at_key: bool = False) -> None:
        """Notes a mistake, unless it only follows from a value that could not be read."""
        if not any(loc[:length] in self.spoiled for length in range(len(loc) + 1)):
            self.mistakes.append(Mistake(self._mark(loc, at_key=at_key), loc, what))

    def lines(self) -> list[str]:
        """The mistakes in the order of the file, each once."""
        return list(dict.fromkeys(mistake.line(self.name) for mistake in sorted(self.mistakes, key=_place)))

    def known(self, loc: Loc) -> Loc:
        """The longest part of a location that is in the file."""
        while loc and loc not in self.values:
            loc = loc[:-1]
        return loc

    def _mark(self, loc: Loc, *, at_key: bool) -> Mark:
        known = self.known(loc)
        # A value that is missing from a mapping is shown at the mapping's own key.
        missing = known != loc and isinstance(self._at(known), dict | list)
        places = self.keys if (at_key and known == loc) or missing else self.values
        return places.get(known) or self.values.get(known) or TOP

    def _at(self, loc: Loc) -> Any:
        value = self.value
        for part in loc:
            value = value[part]
        return value


def _place(mistake: Mistake) -> Mark:
    return mistake.mark
