"""Reads new arrays for a trained model in the same way as its training arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from msda_bench.api import Array, DataError, DomainData, Files, NewRows, NewRowsReader
from msda_bench_builtin.datasets.tables.array_doubts import sampled, spread
from msda_bench_builtin.datasets.tables.columns import Range
from msda_bench_builtin.datasets.tables.new_table import FEW, MOST_OUTSIDE, OTHER_UNIT, no_labels, not_used
from msda_bench_builtin.datasets.tables.npz import padded
from msda_bench_builtin.datasets.tables.numbers import factor_text, other_unit
from msda_bench_builtin.datasets.tables.read import Column
from msda_bench_builtin.datasets.tables.texts import names_text, text_of


@dataclass(frozen=True, eq=False)
class UsualArray:
    """What is usual in the array of inputs: the range of numbers in rows, and how much each domain varies."""

    range: Range
    spreads: Array

    @classmethod
    def of(cls, x: Array, rows: Mapping[str, Array]) -> UsualArray:
        """What is usual in the rows of each domain."""
        every = np.concatenate(list(rows.values()))
        columns = [sampled(x, mine) for mine in rows.values()]
        spreads = np.array([spread(one, np.ones(len(one[0]), bool)) for one in columns])
        return cls(Range(float(np.nanmin(x[every])), float(np.nanmax(x[every]))), spreads)

    def doubt(self, x: Array) -> str | None:
        """How new rows differ as in another unit; None if they do not."""
        if len(x) >= FEW:
            every = sampled(x, np.arange(len(x)))
            spreads = np.append(self.spreads, spread(every, np.ones(len(x), bool)))
            unit = other_unit(spreads, spreads)
            if unit is not None and len(self.spreads) in unit.domains:
                return f"varies {factor_text(unit.factor)} what was learned from"
        low, high = self.range
        outside = float(np.mean((x < low) | (x > high)))
        if outside <= MOST_OUTSIDE:
            return None
        return f"has {100 * outside:.0f} % of its numbers outside of all that was learned from, {low:.3g} to {high:.3g}"


@dataclass(frozen=True, eq=False)
class NewArrays:
    """The arrays of a new file by name.

    Attributes:
        inputs: the rows, as the dataset reads them.
        others: those beside them that the file has; None for one without one value for each row.
        domain: that of domains as a column; None if the file has none.
    """

    inputs: Array
    others: Mapping[str, Array | None]
    domain: Column | None


@dataclass(frozen=True, kw_only=True, eq=False)
class ArraysReader(NewRowsReader):
    """Reads arrays with the shape of others.

    Attributes:
        classes: their names, in order; none for a number.
        sees_target: whether each domain is standardised by itself.
        source: the dataset, which reads the new file, too.
        shape: of an example.
        dtype: of a domain's rows.
        usual: of the inputs.
        gaps: whether numbers were missing in what was learned from.
    """

    classes: tuple[str, ...]
    sees_target: bool
    source: Any
    shape: tuple[int, ...]
    dtype: type[np.floating[Any]]
    usual: UsualArray
    gaps: bool

    def read(self, path: Path, files: Files) -> NewRows:
        """The rows; see `NewRowsReader`."""
        found = replace(self.source, file=str(path)).named()
        x, name = found.inputs, self.source.inputs
        if self.gaps and x.ndim == 1 + len(self.shape):
            x = padded(x, x.ndim - 1, self.shape[-1])
        if x.shape[1:] != self.shape:
            what = f"array {name!r} has rows of shape {x.shape[1:]}, and those that were learned from {self.shape}"
            raise DataError(f"{path}: {what}; make them alike")
        if not self.gaps and np.isnan(x).any():
            what = f"array {name!r} has missing numbers (NaN), and none were missing in what was learned from"
            raise DataError(f"{path}: {what}; fill them")
        units: list[str] = []
        if not self.sees_target and (doubt := self.usual.doubt(x)):
            units.append(f"array {name!r} {doubt}: {OTHER_UNIT}")
        beside, others = _beside(found.others, len(x))
        lines: list[str] = []
        if others:
            lines.append(f"arrays without one value for each row are not copied to the answers: {names_text(others)}")
        if self.source.labels in beside:
            texts = [*dict.fromkeys(beside[self.source.labels])]
            lines.append(not_used(f"array {self.source.labels!r} (label)", texts, self.classes))
        return NewRows(
            DomainData(x.astype(self.dtype, copy=False), no_labels(len(x), self.classes)),
            beside,
            _domains(path, found.domain),
            tuple(f"{path.name}: {line}" for line in lines),
            tuple(f"{path.name}: {line}" for line in units),
        )


def _beside(others: Mapping[str, Array | None], rows: int) -> tuple[dict[str, list[str]], list[str]]:
    """Arrays of one value for each row as texts, and the names of the rest."""
    kept: dict[str, list[str]] = {}
    for name, array in others.items():
        if array is not None and array.shape == (rows,) and array.dtype.kind in "iubfUS":
            kept[name] = [*_texts(array)]
    return kept, [name for name in others if name not in kept]


def _texts(array: Array) -> Iterator[str]:
    for value in array.tolist():
        try:
            yield text_of(value)
        except UnicodeDecodeError:
            yield repr(value)


def _domains(path: Path, domain: Column | None) -> Array | None:
    if domain is None:
        return None
    named = domain.named
    if (named.codes < 0).any():
        raise DataError(f"{path}: row {int(np.argmax(named.codes < 0))} has no domain; name it, or leave the array out")
    return named.written
