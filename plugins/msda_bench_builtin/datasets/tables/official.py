"""Official test rows of a user's file: the column or array that marks them, and the values that do."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from msda_bench.api import Array, DataError
from msda_bench.functional import plain_texts
from msda_bench_builtin.datasets.tables.read import Column
from msda_bench_builtin.datasets.tables.texts import names_text

_TRAINED = {"train", "training"}
_VALIDATED = {"val", "valid", "validation", "dev", "development"}
_TESTED = {"test", "testing", "tests", "eval", "evaluation", "holdout", "heldout", "held_out", "hold_out"}
_YES, _NO = {"1", "true", "yes"}, {"0", "false", "no"}
_NAMES = {"split", "splits", "fold", "folds", "set", "subset", "partition", "kfold", "cv"}
"""Usual names of columns of official splits; `is_train` and `test_mask` are others."""
_FOLDS = 20
"""The maximum number of folds."""


class Marked(NamedTuple):
    """The column that marks official test rows, how messages call it, and its texts that mean them."""

    column: Column
    what: str
    tests: tuple[str, ...]


def named_in(text: str, held: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """The column and the values that `COLUMN` or `COLUMN=VALUE,VALUE` names; no values if only a column is named."""
    if text in held or "=" not in text:
        return text, ()
    ends = [place for place, char in enumerate(text) if char == "="]
    end = next((place for place in ends if text[:place] in held), ends[0])
    values = [value.strip() for value in text[end + 1 :].split(",")]
    return text[:end], tuple(filter(None, values))


def tests_among(name: str, column: Column) -> tuple[str, ...]:
    """The texts of a column, called `name`, that mean the test; none if that is not clear.

    Without a test, the validation part is it, as in folders `train` and `val`.
    """
    texts = {text: text.strip().casefold() for text in column.texts}
    yes: set[str] = set()
    if _is_word("test", name):
        yes = _YES
    elif _is_word("train", name):
        yes = _NO
    kinds = [(_TESTED, _TRAINED | _VALIDATED), (_VALIDATED, _TRAINED), (yes, _YES | _NO)]
    for means, others in kinds:
        found = tuple(text for text, plain in texts.items() if plain in means)
        if 0 < len(found) < len(texts) and {*texts.values()} <= means | others:
            return found
    return ()


def is_split(name: str, column: Column) -> bool:
    """Whether a column says which rows are for training and which for testing, or numbers folds."""
    if not 1 < len(column.texts) <= _FOLDS:
        return False
    if tests_among(name, column):
        return True
    if name.strip().casefold().replace("-", "_") not in _NAMES:
        return False
    texts = {text.strip().casefold() for text in column.texts}
    if texts & (_TRAINED | _VALIDATED | _TESTED) or texts <= {"true", "false"}:
        return True
    return bool(np.isfinite(column.numbers).all() and not (column.numbers % 1).any())


def _is_word(word: str, name: str) -> bool:
    """Whether a name is made of this word, such as `is_test`, `testMask` or `test`."""
    words = re.split(r"[\W_\d]+|(?<=[a-z])(?=[A-Z])", name)
    rest = {other.casefold() for other in words} - {word, "is", "in", "mask", "row", "rows", "set", ""}
    return word in map(str.casefold, words) and not rest


def marked_by(path: Path, kind: str, text: str, columns: Mapping[str, Column]) -> Marked:
    """What `test_rows` names; `kind` is column or array.

    Raises:
        DataError: it does not say which values mean the test, or no row has one of them.
    """
    name, values = named_in(text, columns)
    column = columns[name].named
    what = f"{kind} {name!r}"
    tests = values or tests_among(name, column)
    held = names_text(sorted(map(repr, column.texts)), 6)
    if not tests:
        how = f"`test_rows: {name}=VALUE` (`--test {name}=VALUE`) names it, or several with commas between them"
        raise DataError(f"{path}: which value of {what} marks official test rows? {how}; it holds {held}")
    forms = plain_texts([*tests, *column.texts], ())
    wanted = forms[: len(tests)]
    texts = forms[len(tests) :]
    unknown = [test for test, form in zip(tests, wanted, strict=True) if form not in texts]
    if unknown:
        raise DataError(f"{path}: `test_rows` names {unknown[0]!r}, but {what} holds {held}; correct it")
    means = tuple(text for text, form in zip(column.texts, texts, strict=True) if form in wanted)
    return Marked(column, what, means)


def mask_of(path: Path, marked: Marked, rows: Mapping[str, Array], groups: Array | None) -> Array:
    """Which rows of all are official test rows, (n,) bool.

    Args:
        path: the file, for messages.
        marked: what marks them.
        rows: of each domain that has labels, where its rows lie in the file.
        groups: of all rows, or None.

    Raises:
        DataError: a row is not marked, all rows of a domain are for the test, or a group is on both sides.
    """
    column, what, tests = marked
    test = np.isin(column.codes, [column.texts.index(text) for text in tests])
    official = np.zeros(len(test), bool)
    for name, mine in rows.items():
        unmarked = mine[column.codes[mine] < 0]
        if len(unmarked):
            remedy = "say of each row whether it is for the test"
            raise DataError(f"{path}: row {int(unmarked[0]) + 1} has no {what} (`test_rows`); {remedy}")
        tested = mine[test[mine]]
        trained = mine[~test[mine]]
        if not len(trained):
            remedy = "mark some others, or name the domain in `leave_out`"
            raise DataError(f"{path}: all rows of domain {name!r} are official test rows by {what}; {remedy}")
        official[tested] = True
        if groups is None:
            continue
        both = np.intersect1d(groups[tested], groups[trained])
        if len(both):
            whose = f"group {str(both[0])!r} of domain {name!r} has training rows and official test rows by {what}"
            raise DataError(f"{path}: {whose}; correct it, or leave `test_rows` out")
    if not official.any():
        why = f"no row of a domain with labels is an official test row by {what}"
        raise DataError(f"{path}: {why}; correct `test_rows`")
    return official


def official_train(
    rows: Mapping[str, Array], test: Array, groups: Array | None
) -> tuple[float | dict[str, float], str]:
    """The `train` of a first suite beside official test rows, and a line on it.

    So that seeds differ, each run draws nine tenths of a domain's other rows; fewer where sources lack the rest, since
    their groups are tested. Half are drawn in a domain without official test rows.

    Args:
        rows: of each domain, where its rows lie in the file.
        test: which rows of all are official test rows.
        groups: of all rows, or None.
    """
    share = 1.0
    for target, mine in rows.items():
        if groups is None:
            break
        tested = groups[mine[test[mine]]]
        for name, others in rows.items():
            if name == target:
                continue
            trained = groups[others[~test[others]]]
            left = ~np.isin(trained, tested)
            share = min(share, float(np.mean(left)))
    share = max(0.01, math.floor(90 * share) / 100)
    drawn = [name for name, mine in rows.items() if not test[mine].any()]
    line = f"each run tests on the official test rows and draws {100 * share:.0f} % of the others to train on (`train`)"
    if not drawn:
        return share, line
    return {"default": share} | dict.fromkeys(drawn, 0.5), line
