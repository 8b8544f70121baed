"""Proposes roles of columns that are no inputs: official test rows, and which rows belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from msda_bench.api import Array
from msda_bench_builtin.datasets.tables.findings import Finding, Look
from msda_bench_builtin.datasets.tables.keys import keys_among
from msda_bench_builtin.datasets.tables.official import is_split, tests_among
from msda_bench_builtin.datasets.tables.texts import names_in, names_text


def proposals(look: Look, names: Sequence[str]) -> list[Finding]:
    """A finding for each of the columns that is an official split or a key; where they disagree, rows stay together."""
    splits: list[Finding] = []
    for name in names:
        if is_split(name, look.columns[name]):
            is_first = all(finding.fate != "test" for finding in splits)
            splits.append(_split(look, name, first=is_first))
    found = {finding.name for finding in splits}
    keys = keys_among(look, [name for name in names if name not in found])
    key = next((finding for finding in keys if finding.fate in {"group", "groups"}), None)
    groups = look.groups if key is None else _groups(look, key)
    if groups is None:
        return [*splits, *keys]
    splits = [_kept_together(look, split, groups) for split in splits]
    keys = [_tested(look, one, groups) for one in keys]
    return [*splits, *keys]


def _kept_together(look: Look, split: Finding, groups: Array) -> Finding:
    """The finding on a split, which is not proposed if it divides groups."""
    if split.fate != "test":
        return split
    both = _on_both_sides(look, groups, _mask(look, split))
    if not both:
        return split
    what = f"{split.what}, but {both} groups of rows that belong together are on both sides"
    return Finding("split", what, "drop", split.name)


def _tested(look: Look, key: Finding, groups: Array) -> Finding:
    """The finding on a key, which is not proposed if the user's own test rows divide its groups."""
    if look.test is None or key.fate not in {"group", "groups"}:
        return key
    both = _on_both_sides(look, groups, look.test)
    if not both:
        return key
    what = f"{both} values of {look.kind} {key.name!r} have training and test rows"
    remedy = "the test is easier than it seems; without --test the suite keeps them together"
    return Finding("leak", what, "drop", key.name, remedy)


def _split(look: Look, name: str, *, first: bool) -> Finding:
    """What to do with a column that is an official split; only the `first` is proposed as the role."""
    column = look.columns[name]
    what = f"{look.kind} {name!r} holds {names_text(sorted(map(repr, column.texts)), 4)}, as an official split does"
    tests = tests_among(name, column)
    asked = f"{name}=VALUE"
    if tests and not any("," in text for text in tests):
        asked = f"{name}={','.join(tests)}"
    by_option = Finding("split", what, "drop", name, f"`--test {asked}` makes rows with it the test")
    if look.says_test or not first or asked.endswith("=VALUE"):
        return by_option
    finding = Finding("split", what, "test", asked)
    mask = _mask(look, finding)
    known = look.labels >= 0
    labelled = np.unique(look.places[known])
    whole = [look.names[place] for place in labelled if mask[known & (look.places == place)].all()]
    if whole:
        remedy = f"all rows of {names_text(whole, 6)} are for the test, so each run draws its own"
        return replace(by_option, remedy=remedy)
    if (look.codes(name)[known] < 0).any() or not mask[known].any():
        return replace(by_option, remedy="rows without a value have no side, so each run draws its own")
    return finding


def _mask(look: Look, finding: Finding) -> Array:
    """The rows that a proposed split marks as the test."""
    column = look.columns[finding.name]
    tests = tests_among(finding.name, column)
    return np.isin(look.codes(finding.name), [column.texts.index(text) for text in tests])


def _groups(look: Look, finding: Finding) -> Array:
    """A number for the group of each row that is read, as a key has it."""
    key = names_in(finding.column, look.columns)[-1]
    return look.codes(key)


def _on_both_sides(look: Look, groups: Array, test: Array) -> int:
    """How many groups have official test rows and others in one domain."""
    _, numbers = np.unique(groups, return_inverse=True)
    numbers = numbers.reshape(-1)
    pairs = look.places * (numbers.max(initial=0) + 1) + numbers
    return len(np.intersect1d(pairs[test], pairs[~test]))
