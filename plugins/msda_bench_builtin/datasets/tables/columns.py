"""Makes columns numbers: what each becomes, and the map that is learned from training rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from msda_bench.api import Array, DataError, Inputs
from msda_bench.functional import frequent_columns, ngram_counts, plain_texts, select_columns
from msda_bench_builtin.datasets.tables.read import NO_NAME, Column
from msda_bench_builtin.datasets.tables.texts import names_text

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Standardise: TypeAlias = Literal["sources", "domain", "none"]
"""The training rows over which numbers get mean 0 and variance 1: those of all sources, of each domain, or none."""
Gaps: TypeAlias = Literal["mark", "fill"]
"""Whether missing values are marked in columns of their own, or filled so that nobody sees where they were."""
_LEVELS = 1000
"""The maximum number of different texts in a category."""
_FEW = 50
"""So many different texts may all be different."""
HUGE = 1e30
_AS_PEOPLE_WRITE = re.compile(r"[$€£¥]?\s?[+-]?[$€£¥]?\s?(\d{1,3}([,'\u2019\s]\d{3})+|\d+)([.,]\d+)?\s?[%‰$€£¥]?")
_THOUSANDS = re.compile(r"[+-]?([1-9]\d{0,2}(,\d{3})+(\.\d+)?|[\d.]+)")
_CELLS = 1 << 29
"""The maximum number of numbers in a table once its categories are columns; 2 GB of float32."""


@dataclass(frozen=True)
class InputColumn:
    """What a column of a table becomes as inputs.

    Attributes:
        name: of the column.
        levels: the texts of a category, "" for a missing one; empty for numbers.
        gaps: whether numbers are missing.
    """

    name: str
    levels: tuple[str, ...] = ()
    gaps: bool = False

    @property
    def raw(self) -> int:
        """Columns before `fitted`: the number, and whether it is there; or the place of a text."""
        return 1 + self.gaps

    @property
    def width(self) -> int:
        """Columns after `fitted`: a number, and whether it is missing; or one for each text, and one for new texts."""
        return len(self.levels) + 1 if self.levels else 1 + self.gaps


class Range(NamedTuple):
    """The least and the largest number of a column."""

    low: float
    high: float


@dataclass(frozen=True)
class Plan:
    """What becomes of the columns of a table.

    Attributes:
        kinds: of the inputs, in order.
        dropped: columns left out, and why.
        text: the column that is read as words, or None.
        gaps: whether missing values are marked; if not, the columns that would mark them are 0.
    """

    kinds: tuple[InputColumn, ...]
    dropped: tuple[tuple[str, str], ...] = ()
    text: str | None = None
    gaps: Gaps = "mark"

    @property
    def raw(self) -> int:
        """Columns that a domain's examples have before `fitted`."""
        return sum(kind.raw for kind in self.kinds)

    @property
    def width(self) -> int:
        """Columns that they have after it, without words."""
        return sum(kind.width for kind in self.kinds)

    def lines(self) -> list[str]:
        """What became of the columns, a line for each fate."""
        missing = [kind.name for kind in self.kinds if kind.gaps]
        marked = ", and a column that says so" if self.gaps == "mark" else ""
        fates = {
            "numbers": [kind.name for kind in self.kinds if not kind.levels],
            f"numbers with missing values (median{marked})": missing,
            "categories (a column for each value, and one for unseen ones)": [
                f"{kind.name} ({len(kind.levels)})" for kind in self.kinds if kind.levels
            ],
            "text": [self.text] if self.text else [],
            "left out": [f"{name} ({why})" for name, why in self.dropped],
        }
        return [f"{fate}: {names_text(names, 40)}" for fate, names in fates.items() if names]


def plan_of(path: Path, columns: Mapping[str, Column], categories: Collection[str], text: str | None) -> Plan:
    """What becomes of the input columns.

    Raises:
        DataError: a column holds numbers and other texts, numbers that are too large, or too many different texts.
    """
    kinds: list[InputColumn] = []
    dropped: list[tuple[str, str]] = []
    for name, column in columns.items():
        if name == text:
            continue
        if name.startswith(NO_NAME):
            dropped.append((name, "has no name"))
        elif not column.texts:
            dropped.append((name, "empty"))
        elif len(column.texts) == 1 and (column.codes >= 0).all():
            dropped.append((name, "the same in all rows"))
        else:
            kinds.append(_kind(path, name, column, category=name in categories))
    plan = Plan(tuple(kinds), tuple(dropped), text)
    if not kinds and text is None:
        raise DataError(f"{path}: no column is left to learn from; {'; '.join(plan.lines()) or 'it has no others'}")
    rows = max((len(column.codes) for column in columns.values()), default=0)
    if plan.width * rows > _CELLS:
        raise DataError(
            f"{path}: {rows} rows of {plan.width} columns are too many; name the `inputs` that matter, or `drop` some"
        )
    return plan


def _kind(path: Path, name: str, column: Column, *, category: bool) -> InputColumn:
    what = f"{path}: column {name!r}"
    written = None if category else as_written(column)
    if written is not None:
        style, remedy = written
        raise DataError(f"{what} holds numbers with {style}; {remedy}, `drop` the column, or name it in `categories`")
    if category or np.isnan(column.numbers).all():
        return _category(path, name, column)
    text = column.first(np.isnan(column.numbers))
    if text:
        raise DataError(f"{what} holds numbers, but {text}; correct it, or name the column in `categories`")
    huge = column.first(abs(column.numbers) > HUGE)
    if huge:
        raise DataError(f"{what} has {huge}, which is too large; correct it, or `drop` the column")
    return InputColumn(name, gaps=bool((column.codes < 0).any()))


def _category(path: Path, name: str, column: Column) -> InputColumn:
    read = len(column.codes) - column.unread
    if len(column.texts) > max(_FEW, min(_LEVELS, read // 2)):
        most = f"a category has at most {_LEVELS}, half as many as rows"
        what = f"column {name!r} has {len(column.texts)} different texts"
        raise DataError(f"{path}: {what}; `drop` it, or name it as `text` or `group`; {most}")
    levels = sorted(column.named.texts)
    if (column.codes < 0).any():
        levels.append("")
    return InputColumn(name, tuple(levels))


def as_written(column: Column) -> tuple[str, str] | None:
    """What else than digits and a point stands in a column of numbers, with an example, and what to do."""
    written = [column.texts[place].strip() for place in np.flatnonzero(np.isnan(column.numbers))]
    if not written or not all(map(_AS_PEOPLE_WRITE.fullmatch, written)):
        return None
    example = max(written, key=len)
    bare = _without_signs(example)
    if bare != example and "," not in bare:
        sign = re.sub(r"[\d.,+-]", "", example).strip()
        return f"{sign!r}, such as {example!r}", f"write {bare}"
    if all(map(_THOUSANDS.fullmatch, map(_without_signs, written))):
        remedy = f"write {bare.replace(',', '')}, or {bare.replace(',', '.')} if that is meant"
        return f"thousands separators, such as {example!r}", remedy
    return f"a decimal comma, such as {example!r}", "write points"


def _without_signs(number: str) -> str:
    """A number as people write it without blanks, percent signs and currencies."""
    return re.sub(r"[^\d.,+-]", "", number)


def ranges_of(plan: Plan, columns: Mapping[str, Column]) -> dict[str, Range]:
    """The least and the largest number of each column of numbers."""
    ranges: dict[str, Range] = {}
    for kind in plan.kinds:
        if not kind.levels:
            numbers = columns[kind.name].numbers
            ranges[kind.name] = Range(float(numbers.min()), float(numbers.max()))
    return ranges


def encoded(plan: Plan, columns: Mapping[str, Column], ranges: Mapping[str, Range], *, scaled: bool) -> Array:
    """All rows, (n, plan.raw) float32; the same for any split, since no row is compared with others.

    Numbers that are to be standardised are first moved and scaled, -1 .. 1 being their range, in double precision,
    which standardising undoes: so no digit is lost of years, times or other large numbers that differ little. A number
    is NaN where it is missing, though none was in the rows of the plan.
    """
    parts: list[Array] = []
    for kind in plan.kinds:
        column = columns[kind.name]
        if kind.levels:
            numbers = _places(kind.levels, column)
        else:
            numbers = column.numbers
            if scaled:
                low, high = ranges[kind.name]
                half = (high - low) / 2
                numbers = (numbers - (low + half)) / (half or 1)
            numbers = np.append(numbers, 0 if kind.gaps else np.nan)
        parts.append(numbers[column.codes].astype(np.float32))  # -1, the last one, is the missing value
        if kind.gaps:
            parts.append((column.codes >= 0).astype(np.float32))
    rows = len(next(iter(columns.values())).codes)
    return np.stack(parts, axis=1) if parts else np.zeros((rows, 0), np.float32)


def _places(levels: Sequence[str], column: Column) -> Array:
    """The place of each of a column's texts among the levels, and last that of a missing value; -1 if it has none."""
    # All together, since 1 and 1.0 are the same where all are numbers.
    named = plain_texts([*levels, *column.texts], column.missing)
    known, texts = named[: len(levels)], named[len(levels) :]
    place = {text: number for number, text in enumerate(known)}
    return np.array([place.get(text, -1) for text in [*texts, ""]])


def with_words(
    dense: Array,
    column: Column,
    longest: int,
    units: Literal["words", "characters"],
    vocabulary: Sequence[str] | None = None,
) -> csr_matrix:
    """The rows and, after them, how often each group of words or characters occurs in the text, CSR float32.

    The groups are those of the vocabulary; by default all that occur, in alphabetical order.
    """
    counts, _ = ngram_counts([*column.texts, ""], longest, vocabulary, units=units)
    return joined(dense, counts[column.codes])


class _Scale(NamedTuple):
    median: float
    mean: float
    deviation: float


@dataclass(frozen=True, eq=False)
class Encoding:
    """What was learned of training rows: the map from a domain's examples to the network's input.

    Attributes:
        plan: what becomes of the columns.
        scales: of each column of numbers over all sources, and of each domain if each is standardised by itself.
        known: the places of each category's texts that occur in training rows.
        vocabulary: the columns of words that are kept, (m,) int64; None without a text.
        words: how many columns they become.
        usual: the place of each category's most frequent text, which fills its gaps; none if gaps are marked.
    """

    plan: Plan
    scales: Mapping[tuple[str, InputColumn], _Scale]
    known: Mapping[InputColumn, Array]
    vocabulary: Array | None
    words: int
    usual: Mapping[InputColumn, int] | None = None

    def __call__(self, domain: str, rows: Inputs) -> Inputs:
        """The domain's examples as the network gets them."""
        held = _dense(rows, self.plan.raw)
        made = [np.zeros((len(held), 0), np.float32)]
        for kind, mine in _slices(self.plan).items():
            if kind.levels:
                made.append(self._levels(kind, held[:, mine.start]))
                continue
            scaled = _scaled(held[:, mine], self.scales.get((domain, kind)) or self.scales["", kind])
            if self.usual is not None:
                scaled[:, 1:] = 0
            made.append(scaled)
        whole = np.concatenate(made, axis=1, dtype=np.float32)
        if self.vocabulary is None:
            return whole
        counts = cast("csr_matrix", rows)[:, self.plan.raw :]
        return joined(whole, select_columns(counts, self.vocabulary, self.words))

    def _levels(self, kind: InputColumn, places: Array) -> Array:
        """A column for each level, then one for those that no training row has."""
        usual = self.usual or {}
        if kind in usual:
            places = np.where(places == kind.levels.index(""), usual[kind], places)
        last = len(kind.levels)
        known = np.where(np.isin(places, self.known[kind]), places, last).astype(np.int64)
        return np.eye(last + 1, dtype=np.float32)[known]


def fitted(plan: Plan, train: Mapping[str, Inputs], standardise: Standardise, words: int = 0) -> Encoding:
    """Learns medians, means, variances, the categories that occur and the vocabulary from training rows.

    `train` has the sources in order, then the target; `words` is 0 if no column is text.
    """
    dense = {domain: _dense(rows, plan.raw) for domain, rows in train.items()}
    pooled = np.concatenate([dense[domain] for domain in list(dense)[:-1] or dense])
    every = np.concatenate(list(dense.values()))
    scales: dict[tuple[str, InputColumn], _Scale] = {}
    known: dict[InputColumn, Array] = {}
    usual: dict[InputColumn, int] = {}
    for kind, mine in _slices(plan).items():
        if kind.levels:
            there = np.unique(every[:, mine.start])
            known[kind] = there[there >= 0]  # others are of no level
            if "" in kind.levels:
                usual[kind] = _most_frequent(kind, pooled[:, mine.start])
            continue
        shared = _scale(pooled[:, mine], 0.0, plain=standardise == "none")
        scales["", kind] = shared
        if standardise == "domain":
            for name, rows in dense.items():
                scales[name, kind] = _scale(rows[:, mine], shared.median)
    vocabulary = None
    if words:
        counts = [cast("csr_matrix", rows)[:, plan.raw :] for rows in train.values()]
        vocabulary = frequent_columns(counts, words, 2)
    return Encoding(plan, scales, known, vocabulary, words, usual if plan.gaps == "fill" else None)


def _most_frequent(kind: InputColumn, places: Array) -> int:
    """The place of a category's most frequent text, missing values aside; the first if all are missing."""
    counts = np.bincount(places[places >= 0].astype(np.int64), minlength=len(kind.levels))
    counts[kind.levels.index("")] = 0
    return int(counts.argmax())


def _slices(plan: Plan) -> dict[InputColumn, slice]:
    """Where the columns of each kind lie before `fitted`."""
    slices: dict[InputColumn, slice] = {}
    start = 0
    for kind in plan.kinds:
        slices[kind] = slice(start, start + kind.raw)
        start += kind.raw
    return slices


def _dense(rows: Inputs, raw: int) -> Array:
    return rows if isinstance(rows, np.ndarray) else cast("Array", rows[:, :raw].toarray())


def joined(dense: Array, sparse: csr_matrix) -> csr_matrix:
    """The columns of both, CSR float32 with sorted indices."""
    from scipy.sparse import csr_matrix, hstack

    made: csr_matrix = hstack([csr_matrix(dense), sparse], format="csr", dtype=np.float32)
    made.sort_indices()
    return made


def _there(rows: Array) -> tuple[Array, Array]:
    """Numbers, and which of them are not missing."""
    values = rows[:, 0].astype(np.float64)
    if rows.shape[1] > 1:
        return values, rows[:, 1] > 0
    return values, ~np.isnan(values)


def _scale(rows: Array, otherwise: float, *, plain: bool = False) -> _Scale:
    """The scale of the known values; if there are none, another median is used."""
    values, there = _there(rows)
    if not there.any():
        return _Scale(otherwise, otherwise, 1.0)
    median = float(np.median(values[there]))
    whole = np.where(there, values, median)
    if plain:
        return _Scale(median, 0.0, 1.0)
    # Rounding can make the deviation of a constant column slightly larger than 0.
    if whole.min() == whole.max():
        return _Scale(median, float(whole[0]), 1.0)
    return _Scale(median, float(whole.mean()), float(whole.std()))


def _scaled(rows: Array, scale: _Scale) -> Array:
    values, there = _there(rows)
    whole = np.where(there, values, scale.median)
    numbers = (whole - scale.mean) / scale.deviation
    return np.stack([numbers, ~there], axis=1, dtype=np.float32)[:, : rows.shape[1]]
