"""Doubts about the columns of a table, one by one and compared with each other, and about its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from msda_bench.api import Array, DataError
from msda_bench.functional import Told, characters_of, codes_of, order_told, told_by, unspaced
from msda_bench_builtin.datasets.tables.columns import as_written, plan_of
from msda_bench_builtin.datasets.tables.dates import date_in
from msda_bench_builtin.datasets.tables.findings import MEASURED, Finding, Look
from msda_bench_builtin.datasets.tables.keys import called_like_key
from msda_bench_builtin.datasets.tables.numbers import (
    Gap,
    factor_text,
    gaps_among,
    order_of,
    other_unit,
    prints_of,
)
from msda_bench_builtin.datasets.tables.parts import may_be_missing, option
from msda_bench_builtin.datasets.tables.proposals import proposals
from msda_bench_builtin.datasets.tables.read import NO_NAME, Column
from msda_bench_builtin.datasets.tables.row_doubts import copied, ordered, recorded
from msda_bench_builtin.datasets.tables.texts import names_in, names_text

_CODED = 50
"""A column of numbers and texts with at most so many values is taken for a category."""
_RARE = 4
"""A category of more than that many values has at least so many rows a value."""
_SORTED = 0.9
_WORDS = 3
"""Texts of so many words on average may be sentences."""
_LONG = 2
"""Characters of a word, in scripts without blanks."""
_SMALL = 20
"""Numbers of a domain, from which on its median is compared."""
SAME_UNIT = "if its unit differs, correct it; `standardise: domain` makes them alike"
_BY_TEXT = "to learn from its words name it by --text"
_ENOUGH = 40
"""Rows, from which on what one column tells is measured."""
_MEASURED = 5000
"""At most so many rows, evenly spaced, are used to measure that."""
_TOLD, _TOLD_BY_GAPS = 0.75, 0.25
"""How much one column, or which values are missing, must tell to be reported; see `Told.exceeds`."""
_FOLLOWED = 0.98
"""How well a column must put the rows of a regression in the order of their labels to be reported; see `order_told`."""
_KNOWN = "take it out only if it is known before the label is"


def doubts_about(look: Look, text: str | None) -> list[Finding]:
    """Each doubt about columns of inputs, then about rows; `text` is the column that is read as words."""
    used = used_columns(look, text)
    found: dict[str, Finding] = {}
    for name, column in used.items():
        role = _role(look, name, column)
        if role is not None:
            found[name] = role
    for finding in proposals(look, [name for name in used if name not in found]):
        for part in names_in(finding.name, used):
            if part in used:
                found[part] = finding
    counted = _counted(look, used, found)
    for name, column in used.items():
        unfit = None if name in found else _unfit(look, name, column, counted)
        if unfit is not None:
            found[name] = unfit
    kept = {name: column for name, column in used.items() if name not in found}
    grouped = look.groups is not None or any(finding.fate == "group" for finding in found.values())
    ordered = [found[name] for name in used if name in found]
    if not grouped:
        doubts = [called_like_key(look, name) for name in kept]
        ordered += [doubt for doubt in doubts if doubt]
    compared = [*gaps_in(look, kept), *_compared(look, kept), *_telling(look, kept), *_followed(look, kept)]
    return [*dict.fromkeys(ordered), *compared, *_rows(look, kept, grouped=grouped)]


def used_columns(look: Look, text: str | None) -> dict[str, Column]:
    """The columns that are judged; others are left out in any case, since they are empty, or the same in all rows."""
    used: dict[str, Column] = {}
    for name, column in look.columns.items():
        if name == text or name.startswith(NO_NAME):
            continue
        is_constant = len(column.texts) == 1 and (column.codes >= 0).all()
        if column.texts and not is_constant:
            used[name] = column
    return used


def gaps_in(look: Look, columns: Mapping[str, Column]) -> list[Finding]:
    """Numbers that may stand for a missing value, a line for each with all of its columns."""
    found: dict[str, list[tuple[str, Gap]]] = {}
    for name, column in columns.items():
        for gap in _gaps_of(look.codes(name), column):
            places = np.flatnonzero(column.numbers == gap.value)
            texts = ",".join(column.texts[place] for place in places)
            found.setdefault(texts, []).append((name, gap))
    return [_gap(look, texts, where) for texts, where in found.items()]


def _gaps_of(codes: Array, column: Column) -> list[Gap]:
    counts = np.bincount(codes[codes >= 0], minlength=len(column.texts))
    there = np.flatnonzero(np.isfinite(column.numbers) & (counts > 0))
    if not len(there):
        return []
    values, places = np.unique(column.numbers[there], return_inverse=True)
    times = np.bincount(places.reshape(-1), counts[there])
    return gaps_among(values, times)


def _gap(look: Look, texts: str, where: Sequence[tuple[str, Gap]]) -> Finding:
    """A finding on texts in these columns."""
    about = []
    names = []
    for name, gap in where:
        about.append(f"{name} ({gap.times} of them; others {gap.low:g} to {gap.high:g})")
        names.append(name)
    what = f"{texts} repeats far outside of all other numbers in {names_text(about, 4)}"
    said = option({*look.gaps, *(f"{name}={texts}" for name in names)})
    remedy = f"if it stands for a missing value, {said} says so"
    if not all(gap.certain for _, gap in where):
        return Finding("odd", what, "none", remedy=remedy)
    items = [f"{name}={text}" for name in names for text in texts.split(",")]
    return Finding("gap", what, "missing", ",".join(items), remedy)


def _role(look: Look, name: str, column: Column) -> Finding | None:
    """What a column is instead of an input: the number of a row, or a date."""
    if _counts_rows(column, look.rows, look.places):
        return Finding("odd", f"column {name!r} numbers the rows", "drop", name)
    date = date_in(column)
    if date is None:
        return None
    what = f"column {name!r} holds dates or times, such as {date!r}"
    remedy = "to learn from it write what matters, such as the month, as a number"
    return Finding("date", what, "drop", name, remedy)


def _counts_rows(column: Column, rows: Array, domains: Array) -> bool:
    """Whether whole numbers, all different, number the rows: nearly without gaps, or in order; or those of a domain."""
    numbers = column.numbers
    codes = column.codes[rows]
    if len(numbers) < MEASURED or (codes < 0).any() or not _are_whole(numbers):
        return False
    values = numbers[codes]
    if len(np.unique(values)) == len(values):
        steps = np.diff(values)
        is_in_order = (steps > 0).all() or (steps < 0).all()
        return bool(is_in_order or np.ptp(values) < 2 * len(values))
    order = np.argsort(domains, kind="stable")
    within = np.diff(domains[order]) == 0
    steps = np.diff(values[order])[within]
    return bool((steps > 0).all() and steps.mean() < 2)  # noqa: PLR2004 - few are left out


def _are_whole(numbers: Array) -> bool:
    return bool(np.isfinite(numbers).all() and not (numbers % 1).any())


def _counted(look: Look, used: Mapping[str, Column], found: Mapping[str, Finding]) -> Array:
    """The rows that are no copies of an earlier one: a copy shows nothing that the row itself does not."""
    if len(look.columns) == 1:  # which has no rows that differ otherwise
        return np.ones(len(look.rows), bool)
    compared = []
    for name in used:
        if name not in found or not found[name].what.endswith("numbers the rows"):
            compared.append(look.codes(name))
    prints = prints_of([*compared, look.labels])
    _, places = np.unique(prints, return_index=True)
    first = np.zeros(len(prints), bool)
    first[places] = True
    return first


def _unfit(look: Look, name: str, column: Column, counted: Array) -> Finding | None:
    """Why a column cannot be an input as it is."""
    return _leak(look, name, column, counted) or _odd(look, name, column) or _of_one_domain(look, name, column)


def _leak(look: Look, name: str, column: Column, counted: Array) -> Finding | None:
    """Whether a column gives the label away: each value, in two counted rows on average, has one label, or by order."""
    known = look.labels >= 0
    codes = look.codes(name)[known]
    labels = look.labels[known]
    there = codes >= 0
    values = np.count_nonzero(np.bincount(codes[there]))
    are_repeated = 2 * values <= np.count_nonzero(there & counted[known])
    if are_repeated and np.ptp(labels[there]) and _determines(codes[there], labels[there]):
        return Finding("leak", f"each value of column {name!r} has one label alone", "drop", name, _KNOWN)
    numbers = column.numbers
    if len(numbers) < max(MEASURED, len(codes) // 2) or not _are_whole(numbers):
        return None
    domains = look.places[known]
    observed = expected = 0.0
    for domain in np.unique(domains[there]):
        mine = np.flatnonzero(there & (domains == domain))
        order = np.argsort(numbers[codes[mine]], kind="stable")
        found, possible = order_of(labels[mine[order]], regression=look.regression)
        observed += found
        expected += possible
    if not observed > _SORTED * expected > 0:
        return None
    what = f"the whole numbers of column {name!r} put each domain in the order of the labels"
    return Finding("leak", what, "drop", name, _KNOWN)


def _odd(look: Look, name: str, column: Column) -> Finding | None:
    """What to do with a column that cannot be used as it is, and why."""
    try:
        plan_of(look.path, {name: column}, (), None)
    except DataError as error:
        reason, _, remedy = error.lines[0].removeprefix(f"{look.path}: ").partition("; ")
        return _unusable(look, name, column, reason, remedy)
    rows = int(np.count_nonzero(look.codes(name) >= 0))
    if not np.isnan(column.numbers).all() or len(column.texts) <= max(_CODED, rows // _RARE):
        return None
    what = f"column {name!r} has {len(column.texts)} different texts in {rows} rows"
    remedy = "take it out if its values mean the same in every domain"
    if _words(column) >= _WORDS:
        remedy = _BY_TEXT
    return Finding("odd", what, "drop", name, remedy)


def _unusable(look: Look, name: str, column: Column, reason: str, remedy: str) -> Finding:
    """A column of numbers and texts, or of too many texts: a category, or dropped.

    Args:
        look: all rows.
        name: of the column.
        column: its values.
        reason: why it cannot be used as it is.
        remedy: what makes it usable.
    """
    texts = {column.texts[place] for place in np.flatnonzero(np.isnan(column.numbers))}
    written = as_written(column) is not None
    some = 0 < len(texts) < len(column.texts)
    if some and all(map(may_be_missing, texts)):
        remedies = [f"if that is a missing value, say {option({*look.gaps, *texts})}"]
    elif texts and not written and len(column.texts) <= _CODED:
        return Finding("odd", reason, "categories", name)
    elif written or len(texts) < len(column.texts):
        remedies = [f"to learn from it {remedy.partition(',')[0]} (a missing value is empty or NA)"]
    else:
        remedies = []
    if _words(column) >= _WORDS:
        remedies.append(_BY_TEXT)
    return Finding("odd", reason, "drop", name, "; ".join(remedies))


def _words(column: Column) -> float:
    """The mean number of words in a text."""
    if unspaced(column.texts):
        lengths = [len(characters_of(text)) / _LONG for text in column.texts]
    else:
        lengths = [len(text.split()) for text in column.texts]
    return float(np.mean(lengths))


def _of_one_domain(look: Look, name: str, column: Column) -> Finding | None:
    """Whether a column says no more than which domain a row is of."""
    codes = look.codes(name)
    there = codes >= 0
    values = np.count_nonzero(np.bincount(codes[there]))
    if values < len(("one", "other")) or not _determines(codes[there], look.places[there]):
        return None
    if values == len(look.names):
        what = f"column {name!r} has a value of its own in each domain, the same in all of its rows"
    elif np.isnan(column.numbers).all():
        what = f"each value of column {name!r} occurs in one domain alone, where no other domain can teach it"
    else:
        return None
    return Finding("odd", what, "drop", name)


def _determines(codes: Array, others: Array) -> bool:
    """Whether each code always comes with the same one of the others."""
    last = np.zeros(int(codes.max(initial=0)) + 1, np.int64)
    last[codes] = others
    return bool((last[codes] == others).all())


def _compared(look: Look, kept: Mapping[str, Column]) -> Iterator[Finding]:
    """Columns that differ between domains in a way that no method can repair: another unit, or no value at all."""
    absent: dict[str, list[str]] = {}
    constant: dict[str, list[str]] = {}
    for name, column in kept.items():
        counts = np.bincount(look.places[look.codes(name) >= 0], minlength=len(look.names))
        for place in np.flatnonzero(counts == 0):
            absent.setdefault(look.names[place], []).append(name)
        for alone, text in _of_one_value(look, name, column):
            constant.setdefault(look.names[alone], []).append(f"{name} ({text})")
        if look.alike or name not in look.measured:
            continue
        first, medians, third = look.quartiles(name, _SMALL)
        unit = other_unit(medians, third - first)
        if unit:
            where = names_text([look.names[place] for place in unit.domains], 6)
            of = names_text([f"{median:.3g}" for median in medians], 8)
            what = f"column {name!r} in {where} is {factor_text(unit.factor)} that in other domains (medians {of})"
            yield Finding("unit", what, remedy=SAME_UNIT)
    for domain, names in absent.items():
        what = f"{domain} has no value at all in {names_text(names, 8)}"
        yield Finding("missing", what, remedy="the median stands for it; `drop` leaves such a column out")
    for domain, names in constant.items():
        what = f"{domain} has one value alone in {names_text(names, 8)}, other domains more"
        yield Finding("constant", what, remedy="that tells the domain; `drop` leaves such a column out")


def _of_one_value(look: Look, name: str, column: Column) -> Iterator[tuple[int, str]]:
    """The domains of enough rows in which a column has only one value, if it has others elsewhere; and the value."""
    codes = look.codes(name)
    sizes = np.bincount(look.places, minlength=len(look.names))
    there = codes >= 0
    if len(np.unique(codes[there])) < len(("one", "other")):  # then only the gaps can tell domains apart
        return
    least = np.full(len(sizes), len(column.texts))
    greatest = np.full(len(sizes), -1)
    np.minimum.at(least, look.places[there], codes[there])
    np.maximum.at(greatest, look.places[there], codes[there])
    for place in np.flatnonzero((sizes >= _SMALL) & (least == greatest)).tolist():
        yield place, column.texts[int(least[place])]


def _telling(look: Look, kept: Mapping[str, Column]) -> Iterator[Finding]:
    """Columns from which the domain or the label can be predicted, and whether missing values predict them."""
    some = np.unique(np.linspace(0, len(look.rows) - 1, _MEASURED).astype(int))
    labels = look.labels[some]
    known = labels >= 0
    if not kept or len(some) < _ENOUGH or known.sum() < _ENOUGH:
        return
    asked = [("domain", np.ones(len(known), bool), look.places[some])]
    if not look.regression:
        asked.append(("label", known, labels))
    codes = {name: _codes(look, name, some) for name in kept}
    gaps = np.stack([look.codes(name)[some] < 0 for name in kept], axis=1)
    _, pattern = np.unique(gaps, axis=0, return_inverse=True)
    pattern = pattern.reshape(-1)
    by_gaps: list[str] = []
    for what, rows, answers in asked:
        told = told_by(pattern[rows], answers[rows])
        if told.exceeds(_TOLD_BY_GAPS):
            by_gaps.append(f"the {what} of {_text(told)}")
        for name, values in codes.items():
            if what == "domain" and look.alike and name in look.measured:
                continue
            told = told_by(values[rows], answers[rows])
            if told.exceeds(_TOLD):
                alone = f"column {name!r} alone tells the {what} of {_text(told)}"
                remedy = _KNOWN if what == "label" else _hidden(look, name)
                yield Finding("telling", alone, remedy=remedy)
    if by_gaps and not look.fills:
        what = f"which values are missing tells {' and '.join(by_gaps)}"
        yield Finding("telling", what, remedy="`gaps: fill` hides it")


def _hidden(look: Look, name: str) -> str:
    """What keeps a column from telling the domain."""
    if name in look.measured:
        return "`standardise: domain` evens out its scale, `drop` leaves it out"
    return "`drop` leaves it out"


def _followed(look: Look, kept: Mapping[str, Column]) -> Iterator[Finding]:
    """Columns whose numbers follow the labels of a regression, such as a copy of them in another unit."""
    known = np.flatnonzero(look.labels >= 0)
    if not look.regression or len(known) < _ENOUGH:
        return
    for name in kept:
        if name not in look.measured:
            continue
        told = order_told(look.measured[name][known], look.labels[known], look.places[known])
        if told > _FOLLOWED:
            what = f"column {name!r} puts the rows of a domain in the order of their labels"
            yield Finding("telling", f"{what} (rank correlation {told:.2f})", remedy=_KNOWN)


def _codes(look: Look, name: str, rows: Array) -> Array:
    """A column's values in some rows as codes; see `codes_of`."""
    if name in look.measured:
        return codes_of(look.measured[name][rows])
    return look.codes(name)[rows] + 1


def _text(told: Told) -> str:
    return f"{100 * told.share:.0f} % of the rows (always the most frequent: {100 * told.usual:.0f} %)"


def _rows(look: Look, kept: Mapping[str, Column], *, grouped: bool) -> Iterator[Finding]:
    """Rows that occur many times, and rows that follow each other as in a recording."""
    if kept:
        yield from copied([look.codes(name) for name in kept], look.places, look.labels, look.names)
    if not look.regression:
        yield from ordered(look.labels, look.places, look.names)
    if not grouped:
        yield from recorded([look.measured[name] for name in kept if name in look.measured], look.places)
