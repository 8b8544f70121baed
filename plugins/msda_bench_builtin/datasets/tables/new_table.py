"""Reads new tables for a trained model in the same way as its training table, and reports doubtful values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from msda_bench.api import Array, DataError, DomainData, Files, Inputs, NewRows, NewRowsReader
from msda_bench.functional import plain_texts
from msda_bench_builtin.datasets.tables.columns import (
    HUGE,
    Encoding,
    InputColumn,
    Plan,
    Range,
    as_written,
    encoded,
    with_words,
)
from msda_bench_builtin.datasets.tables.findings import Look
from msda_bench_builtin.datasets.tables.folder import TABLES, stamp
from msda_bench_builtin.datasets.tables.numbers import factor_text, other_unit
from msda_bench_builtin.datasets.tables.parts import missing_in
from msda_bench_builtin.datasets.tables.read import Column, column, read_table
from msda_bench_builtin.datasets.tables.texts import names_text

FEW = 20
"""With fewer rows the quartiles of a domain are not used."""
OTHER_UNIT = "in another unit? correct it, or take a method with `standardise: domain`"
MOST_OUTSIDE = 0.5
"""A larger share of numbers outside of all that were learned from is doubted."""


@dataclass(frozen=True)
class Usual:
    """What is usual in a column of numbers: its range, and the quartiles of each domain, NaN where it has few rows."""

    range: Range
    first: Array
    middle: Array
    third: Array


def usual_in(look: Look, ranges: Mapping[str, Range]) -> dict[str, Usual]:
    """What is usual in each column of numbers."""
    return {name: Usual(ends, *look.quartiles(name, FEW)) for name, ends in ranges.items()}


@dataclass(frozen=True, kw_only=True)
class TableReader(NewRowsReader):
    """Reads tables with the columns of another one, whatever their order.

    Attributes:
        classes: their names, in order; none for a number.
        sees_target: whether each domain is standardised by itself.
        plan: what becomes of each column that is learned from.
        usual: of each column of numbers.
        roles: the names of the columns of domains, labels and groups, and of predictions, by what they are.
        missing: texts that stand for missing values, see `missing_in`.
        scaled: whether numbers are standardised.
        ngrams: the longest group of words.
        units: what words are, see `ngram_counts`.
        vocabulary: the groups of words in the text, if there is one.
    """

    classes: tuple[str, ...]
    sees_target: bool
    plan: Plan
    usual: Mapping[str, Usual]
    roles: Mapping[str, str]
    missing: tuple[str, ...]
    scaled: bool
    ngrams: int
    units: Literal["words", "characters"]
    vocabulary: tuple[str, ...]

    def read(self, path: Path, files: Files) -> NewRows:
        """The rows; see `NewRowsReader`."""
        everywhere, own = missing_in(self.missing)
        domain = self.roles["domain"]
        state = stamp(path, TABLES)
        _, columns = read_table(path, everywhere, domain, state)
        inputs: dict[str, Column] = {}
        for name in self._names:
            inputs[name] = column(path, columns, name, "inputs").without(name, own.get(name, ()))
        faults: list[str] = []
        doubts: list[str] = []
        for kind in self.plan.kinds:
            _look_at(kind, inputs[kind.name], faults, doubts)
        if faults:
            raise DataError(*(f"{path}: {line}" for line in faults))
        rows = len(next(iter(columns.values())).codes)
        ranges = {name: usual.range for name, usual in self.usual.items()}
        x: Inputs = encoded(self.plan, inputs, ranges, scaled=self.scaled)
        texts = None
        if self.plan.text is not None:
            text = inputs[self.plan.text]
            dense = x if self.plan.kinds else np.zeros((rows, 0), np.float32)
            x = with_words(dense, text, self.ngrams, self.units, self.vocabulary)
            texts = text.written
            if (text.codes < 0).all():
                doubts.append(f"column {self.plan.text!r} has no text in any row")
        doubts += self._unused(columns)
        # Texts of columns that are not read stay as they are written, "NA" too.
        _, written = read_table(path, (), domain, state)
        beside = {name: held.written.tolist() for name, held in written.items() if name not in inputs}
        return NewRows(
            DomainData(x, no_labels(rows, self.classes), texts=texts),
            beside,
            self._domains(path, columns),
            tuple(f"{path.name}: {line}" for line in doubts),
            tuple(f"{path.name}: {line}" for line in self._units(inputs)),
        )

    def stored(self, features: Callable[[str, Inputs], Inputs]) -> NewRowsReader:
        """Without groups of words that are no columns: rare ones may be names of people."""
        if not isinstance(features, Encoding) or features.vocabulary is None:
            return self
        kept = {*features.vocabulary.tolist()}
        words = [word if place in kept else "" for place, word in enumerate(self.vocabulary)]
        return replace(self, vocabulary=tuple(words))

    @property
    def _names(self) -> list[str]:
        names = [kind.name for kind in self.plan.kinds]
        if self.plan.text is not None:
            names.append(self.plan.text)
        return names

    def _units(self, inputs: Mapping[str, Column]) -> Iterator[str]:
        """A line on each column of numbers that may have another unit; none where that is made alike."""
        if self.sees_target:
            return
        for name, usual in self.usual.items():
            column = inputs[name]
            values = column.numbers[column.codes[column.codes >= 0]]
            odd = unusual(values, usual) if len(values) else None
            if odd is not None:
                yield f"column {name!r} {odd}: {OTHER_UNIT}"

    def _domains(self, path: Path, columns: Mapping[str, Column]) -> Array | None:
        """The domain of each row, if the file says it of all."""
        name = self.roles["domain"]
        if name not in columns:
            return None
        named = columns[name].named
        lacking = int((named.codes < 0).sum())
        if lacking == len(named.codes):
            return None
        if lacking:
            row = int(np.argmax(named.codes < 0)) + 1
            raise DataError(
                f"{path}: row {row} has no domain (column {name!r}), and others have one; name it, or leave the column "
                "out of the file"
            )
        return named.written

    def _unused(self, columns: Mapping[str, Column]) -> Iterator[str]:
        """A line on labels and predictions that the file has, which no answer depends on."""
        for role in ("label", "predictions"):
            name = self.roles.get(role, "")
            if name in columns and columns[name].texts:
                classes = self.classes if role == "label" else ()
                yield not_used(f"column {name!r} ({role})", columns[name].texts, classes)


def no_labels(rows: int, classes: Sequence[str]) -> Array:
    """The labels of rows without any, as `DomainData` has them."""
    return np.full(rows, -1, np.int64) if classes else np.full(rows, np.nan, np.float32)


def not_used(what: str, texts: Sequence[str], classes: Sequence[str]) -> str:
    """A line on labels, which are not used, and on those of no class that was learned."""
    line = f"{what} is copied to the answers, and used for nothing"
    if not classes:
        return line
    named = plain_texts([*classes, *texts], ())
    other = sorted({*named[len(classes) :]} - {*named[: len(classes)]})
    if not other:
        return line
    return f"{line}; {names_text([*map(repr, other)], 5)} in it is no class that was learned ({names_text(classes, 5)})"


def _look_at(kind: InputColumn, column: Column, faults: list[str], doubts: list[str]) -> None:
    """Adds the fault that makes a column useless, or doubts about it."""
    if column.texts:
        look = _look_at_category if kind.levels else _look_at_numbers
        look(kind, column, faults, doubts)
        return
    if "" in kind.levels:
        stands = "the missing value"
    else:
        stands = "an unseen one" if kind.levels else "the median"
    doubts.append(f"column {kind.name!r} is empty; {stands} stands for it")


def _look_at_category(kind: InputColumn, column: Column, faults: list[str], doubts: list[str]) -> None:
    what = f"column {kind.name!r}"
    known = [level for level in kind.levels if level]
    named = plain_texts([*known, *column.texts], column.missing)
    learned, here = {*named[: len(known)]}, named[len(known) :]
    unseen = [place for place, text in enumerate(here) if text and text not in learned]
    rows = int(np.isin(column.codes, unseen).sum())
    lacking = int((column.codes < 0).sum())
    texts = names_text([repr(column.texts[place]) for place in unseen], 5)
    if unseen and rows == len(column.codes) - lacking:
        wanted = names_text([*map(repr, known)], 5)
        faults.append(f"{what} has {texts}, and none of the values that were learned from, {wanted}; write these")
    elif unseen:
        doubts.append(f"{what} has values that were never learned from in {rows} rows: {texts}")
    if lacking and "" not in kind.levels:
        doubts.append(f"{what} lacks a value in {lacking} rows, and in none that was learned from")


def _look_at_numbers(kind: InputColumn, column: Column, faults: list[str], doubts: list[str]) -> None:
    what = f"column {kind.name!r}"
    written = as_written(column)
    text = column.first(np.isnan(column.numbers))
    huge = column.first(abs(column.numbers) > HUGE)
    lacking = int((column.codes < 0).sum())
    if written is not None:
        style, remedy = written
        faults.append(f"{what} holds numbers with {style}; {remedy}")
    elif text:
        alone = "held numbers alone in what was learned from, but here"
        faults.append(f"{what} {alone} {text}; correct it, or leave it empty")
    elif huge:
        faults.append(f"{what} has {huge}, which is too large; correct it")
    elif lacking and not kind.gaps:
        gaps = f"lacks a number in {lacking} rows, and in none that was learned from"
        doubts.append(f"{what} {gaps}; the median stands for it")


def unusual(values: Array, usual: Usual) -> str | None:
    """How numbers differ from the usual ones as if they had another unit; None if they do not."""
    median = float(np.median(values))
    if len(values) >= FEW:
        first, third = np.quantile(values, [0.25, 0.75])
        medians = np.append(usual.middle, median)
        spreads = np.append(usual.third - usual.first, third - first)
        unit = other_unit(medians, spreads)
        if unit is not None and len(usual.middle) in unit.domains:
            others = names_text([f"{of:.3g}" for of in usual.middle if np.isfinite(of)], 8)
            return f"is {factor_text(unit.factor)} what was learned from (median {median:.3g}; there {others})"
    low, high = usual.range
    outside = float(np.mean((values < low) | (values > high)))
    if outside <= MOST_OUTSIDE:
        return None
    what = f"lies in {100 * outside:.0f} % of the rows outside of all that was learned from"
    return f"{what} (median {median:.3g}; there {low:.3g} to {high:.3g})"
