"""Doubts about rows, whatever their columns: copies, rows in the order of their classes, and rows of a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from msda_bench.api import Array
from msda_bench.functional import told_by_neighbours
from msda_bench_builtin.datasets.tables.findings import Finding
from msda_bench_builtin.datasets.tables.numbers import copies_among, moves_slowly, prints_of
from msda_bench_builtin.datasets.tables.texts import names_text

_FEWEST = 20
"""Rows of a domain, from which on their order is judged."""
_ORDERED = 0.5
"""How much more neighbours with the same label than in a random order are reported; see `Told.exceeds`."""


def copied(columns: Sequence[Array], places: Array, labels: Array, names: Sequence[str]) -> Iterator[Finding]:
    """A doubt about rows that occur many times; the columns and labels are whole numbers, -1 for a missing one."""
    copies, repeated = copies_among(columns)
    if not copies:
        return
    prints = prints_of(columns)
    known = labels >= 0
    within = len(prints) - len(np.unique(prints_of([*columns, places])))
    with_labels = prints_of([*(column[known] for column in columns), labels[known]])
    differ = len(np.unique(with_labels)) - len(np.unique(prints[known]))
    of_which = f"{within} in their own domain, {copies - within} in another, {differ or 'none'} with another label"
    where = names_text([names[place] for place in np.unique(places[repeated])], 6)
    what = f"{copies} of {len(places)} rows are copies of other rows, in {where} ({of_which})"
    remedy = "remove them, or they are trained on and tested on at once (oversampling belongs after the split)"
    yield Finding("rows", what, remedy=f"{remedy}; `duplicates: drop` leaves out those in their own domain")


def ordered(labels: Array, places: Array, names: Sequence[str]) -> Iterator[Finding]:
    """A doubt about domains whose rows lie in the order of their classes; -1 stands for no label."""
    found: list[str] = []
    for place, name in enumerate(names):
        y = labels[(places == place) & (labels >= 0)]
        if len(y) < _FEWEST:
            continue
        told = told_by_neighbours(y)
        if told.exceeds(_ORDERED):
            found.append(f"{name} {100 * told.share:.0f} % ({100 * told.usual:.0f} %)")
    if found:
        what = f"rows with the label of the row before, beside those in a random order: {names_text(found, 6)}"
        yield Finding("order", what, remedy="runs draw their splits at random, and so should you")


def recorded(columns: Sequence[Array], places: Array) -> Iterator[Finding]:
    """A doubt about rows that follow each other as in a recording."""
    if moves_slowly(columns, places):
        what = "rows that follow each other are nearly equal, as in a recording"
        remedy = "make a row of each window of it, or name by --group what says which rows belong together"
        yield Finding("rows", what, remedy=remedy)
