"""Recognises columns whose values say which rows belong together, such as those of one patient or one trial."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from msda_bench.api import Array
from msda_bench_builtin.datasets.tables.findings import Finding, Look
from msda_bench_builtin.datasets.tables.numbers import between
from msda_bench_builtin.datasets.tables.read import Column

_KEY = re.compile(
    r"id|ids|key|uid|uuid|pid|mrn|patients?|subjects?|subj|persons?|participants?|sessions?|trials?|recordings?|visits?"
    r"|cases?|animals?|users?|clients?|customers?|households?|famil(y|ies)|runs?|clips?|videos?|sequences?|speakers?"
)
"""Words in names of columns that say which rows belong together."""
_PERSON = re.compile("patient|subject|subj|person|participant|speaker|animal|donor|volunteer")
"""Words for those of whom one may be in several domains, such as one person with two devices."""
_ID = re.compile("id|uid|uuid|pid|mrn")
"""Words for what names one person, animal or object, and never counts them."""
_PERSONS, _OFTEN = 6, 3
"""The fewest of them in a domain, and the fewest rows of one, on average; then rows need not be alike."""
_ALIKE = 0.5
"""The share of the variance that lies between groups of rows, if they belong together."""
_GROUPS, _NAMED_GROUPS = 4, 10
"""The fewest values in a domain of a key whose rows are alike, and of one that is only called so."""
_TWICE = 1.5
"""The fewest rows of a value, on average."""
_AGAIN = 1.02
"""The same for a key of one domain each that is called so: a few patients came twice."""
_LOOSE = 1.05
"""How many more stretches of rows than values there may be, if the rows of a value follow each other."""


class _Key(NamedTuple):
    name: str
    size: int
    nested: bool
    person: bool = False


def keys_among(look: Look, names: Sequence[str]) -> list[Finding]:
    """The columns that are keys: the coarsest one is proposed as the group, and none is an input."""
    found = [_key(look, name, look.columns[name]) for name in names]
    keys = [key for key in found if key is not None]
    if not keys:
        return []
    keys.sort(key=lambda key: (not key.nested and not key.person, key.size))
    first, *others = keys
    chosen = first.name if first.nested or first.person else f"{look.domain},{first.name}"
    rows = f"{len(look.rows) / first.size:.1f} rows on average"
    if first.person and not first.nested:
        about = f"{first.size} values, which recur in several domains, each in {rows}: rows that belong together"
    elif first.nested:
        about = f"{first.size} values, each in one domain and in {rows}: rows that belong together"
    else:
        about = f"{len(look.columns[first.name].texts)} values in each domain, each in {rows}, which are alike"
    what = f"{look.kind} {first.name!r} has {about}"
    if look.groups is None:
        findings = [Finding("key", what, "group" if look.kind == "column" else "groups", chosen)]
    else:
        findings = [Finding("key", what, "drop", first.name)]
    for key in others:
        if key.nested:  # another that recurs in every domain may be an input
            what = f"{look.kind} {key.name!r} says which rows belong together, too"
            findings += [Finding("key", what, "drop", key.name)]
    return findings


def called_like_key(look: Look, name: str) -> Finding | None:
    """A doubt about an input that is called like a key: only the user knows whether rows with one value are related."""
    codes = look.codes(name)
    there = codes[codes >= 0]
    values = len(np.unique(there))
    if values < _NAMED_GROUPS or len(there) < _AGAIN * values or not _names_one(_words(name)):
        return None
    what = f"{look.kind} {name!r} is an input, and its name says whom or what a row is of ({values} values)"
    return Finding("key", what, remedy=f"if so, `--group {shlex.quote(name)}` keeps the rows of one together")


def _names_one(words: Sequence[str]) -> bool:
    """Whether a name says no more than which person, animal or object: `patient_id`, but not `patient_age`."""
    said = [word for word in words if word]
    return bool(said) and all(_PERSON.fullmatch(word) or _ID.fullmatch(word) for word in said)


def _key(look: Look, name: str, column: Column) -> _Key | None:
    codes = look.codes(name)
    numbers = column.numbers
    if (codes < 0).any() or np.isinf(numbers).any() or (numbers % 1 > 0).any():
        return None
    in_domains = look.places * len(column.texts) + codes
    pairs = np.unique(in_domains)
    values = len(np.unique(codes))
    nested = len(pairs) <= _LOOSE * values
    groups = codes if nested else in_domains
    count = values if nested else len(pairs)
    fewest = int(np.bincount(pairs // len(column.texts), minlength=len(look.names)).min())
    often = len(codes) / count
    words = _words(name)
    person = any(map(_PERSON.fullmatch, words))
    named = (person and fewest >= _GROUPS) or (any(map(_ID.fullmatch, words)) and fewest >= _NAMED_GROUPS)
    if nested and named and often >= _AGAIN:
        return _Key(name, count, nested)
    if fewest < _GROUPS or often < _TWICE:
        return None
    if person and fewest >= _PERSONS and often >= _OFTEN:
        return _Key(name, values, nested, person=True)
    called = any(map(_KEY.fullmatch, words))
    follow = 1 + np.count_nonzero(np.diff(groups)) <= _LOOSE * count
    is_key = nested and called and fewest >= _NAMED_GROUPS
    if not is_key and (nested or called or follow):
        is_key = _alike(look, name, groups)
    return _Key(name, count, nested) if is_key else None


def _words(name: str) -> list[str]:
    """The words of a name, such as of `patientID` or `trial_no`."""
    return [word.casefold() for word in re.split(r"[\W_\d]+|(?<=[a-z])(?=[A-Z])", name)]


def _alike(look: Look, name: str, groups: Array) -> bool:
    """Whether rows of a group are alike by most of the other columns."""
    groups = np.unique(groups, return_inverse=True)[1].reshape(-1)
    shares = [between(values, groups, look.places) for values in look.compared(name)]
    known = [share for share in shares if np.isfinite(share)]
    return bool(known) and float(np.median(known)) >= _ALIKE
