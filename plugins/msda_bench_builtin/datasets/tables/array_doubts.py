"""Doubts about the inputs of an archive of arrays, as `doubts_about` has them about the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from msda_bench.api import Array
from msda_bench_builtin.datasets.tables.column_doubts import SAME_UNIT
from msda_bench_builtin.datasets.tables.findings import MEASURED, Finding
from msda_bench_builtin.datasets.tables.numbers import factor_text, gaps_among, other_unit
from msda_bench_builtin.datasets.tables.parts import Parts
from msda_bench_builtin.datasets.tables.row_doubts import copied, ordered, recorded
from msda_bench_builtin.datasets.tables.texts import names_text

_COLUMNS = 32
"""The most numbers of each row that are examined; they are evenly spaced."""


def doubts_in(x: Array, parts: Parts, name: str, *, alike: bool, gaps: bool) -> list[str]:
    """A line on each doubt about the array of inputs.

    Args:
        x: (n, ...) numbers of all rows.
        parts: what else is known of the rows.
        name: of the array.
        alike: whether each domain is standardised by itself.
        gaps: whether NaN may stand for a missing number.
    """
    of_domains = list(parts.rows.values())
    columns = sampled(x, np.concatenate(of_domains))
    places = np.repeat(np.arange(len(of_domains)), [len(rows) for rows in of_domains])
    findings = _findings(columns, places, parts, name, alike=alike, gaps=gaps)
    return [finding.line(answered=False) for finding in findings]


def sampled(x: Array, rows: Array) -> list[Array]:
    """Some of the numbers of these rows, float64."""
    flat = x.reshape(len(x), -1)
    chosen = np.unique(np.linspace(0, flat.shape[1] - 1, _COLUMNS).astype(int))
    return [flat[rows, place].astype(np.float64) for place in chosen]


def _findings(
    columns: list[Array],
    places: Array,
    parts: Parts,
    name: str,
    *,
    alike: bool,
    gaps: bool,
) -> Iterator[Finding]:
    names = list(parts.rows)
    codes: list[Array] = []
    measured: list[Array] = []
    coded: set[float] = set()
    for values in columns:
        different, code, counts = np.unique(values, return_inverse=True, return_counts=True)
        codes.append(code.reshape(-1))
        if len(different) >= MEASURED:
            measured.append(values)
        known = np.isfinite(different)
        found = gaps_among(different[known], counts[known])
        coded.update(gap.value for gap in found if gap.certain)
    if coded:
        which = names_text([f"{gap:g}" for gap in sorted(coded)])
        what = f"{which} repeats far outside of all other numbers of array {name!r}"
        put = "NaN there" if gaps else "the median there: arrays have no gaps"
        yield Finding("gap", what, remedy=f"if it stands for a missing value, put {put}")
    spreads = np.array([spread(columns, places == place) for place in range(len(names))])
    unit = None if alike else other_unit(spreads, spreads)
    if unit is not None:
        where = names_text([names[place] for place in unit.domains], 6)
        what = f"array {name!r} in {where} varies {factor_text(unit.factor)} that of other domains"
        yield Finding("unit", what, remedy=SAME_UNIT)
    rows = np.concatenate(list(parts.rows.values()))
    labels = parts.label_places(rows)
    yield from copied(codes, places, labels, names)
    if parts.classes:
        yield from ordered(labels, places, names)
    if parts.groups is None:
        yield from recorded(measured, places)


def spread(columns: list[Array], mine: Array) -> float:
    """The median quartile distance of columns in some rows; 0 if it is not known."""
    distances = []
    for values in columns:
        known = values[mine & np.isfinite(values)]
        if len(known):
            distances.append(np.subtract(*np.quantile(known, [0.75, 0.25])))
    return float(np.median(distances)) if distances else 0.0
