"""Chooses the examples on which a run trains and is tested."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from msda_bench.api import Array, DataError, Dataset, DomainData
from msda_bench.component.dataset import Stratify
from msda_bench.component.sizes import Extent, counts, is_transductive


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of one domain.

    Attributes:
        train: int64 indices, in random order.
        test: int64 indices, in random order; for a source, the examples held out from training.
    """

    train: Array
    test: Array


def split(data: Dataset, target: str, domains: Mapping[str, DomainData], *, seed: int) -> dict[str, Split]:
    """Splits each domain, as a function of (dataset, target, seed) and, without groups, of that domain alone.

    So all methods of a (target, seed) pair share a split, and a smaller training set is a prefix of a larger one. Rows
    are ranked by numbers of a counter-based generator's raw stream, which no release of numpy changes. Official test
    examples are never trained on, and a domain that has some is tested on them only; the transductive protocol uses all
    of the target's examples for both.

    Groups come in a random order that all domains share; with `stratify` the first group of each class in that order
    comes first, then the second of each, and so on, domain by domain; with "shares" the groups of a class lie evenly
    among the others instead. The class of a group is that of most of its rows. The target trains on its first rows and
    is tested on its last ones. A source trains on the first rows of groups that are not tested; the rows that share no
    group with the test, nor with training in any domain, are held out. Training sets have exactly the size that is
    asked for: where one ends within a group, the rest of the group is not used. A training set is a prefix of a larger
    one for the same test.

    Args:
        data: the dataset, whose parameters set the numbers of examples.
        target: the target domain, one of `domains`.
        domains: the loaded domains; their labels are looked at only if the dataset's `stratify` is set.
        seed: the run's seed.

    Raises:
        DataError: a domain has too few examples to train on, the target has none to be tested on, or domains share
            groups although the dataset does not say so.
    """
    run = (data.name, target, seed)
    by_class = data.stratify if data.task.has_classes else False
    rows = {name: _Rows.of(run, name, domain, by_class) for name, domain in domains.items()}
    _check_shared(data, rows.values())
    sizes = {name: counts(data, name, target, extent_of(domain)) for name, domain in domains.items()}
    train, test = _of_target(data, target, rows[target], *sizes[target])
    tested = rows[target].groups_of(test)
    training = {}
    for name, (trained, _) in sizes.items():
        if name != target:
            training[name] = _of_source(data, name, rows[name], trained, tested)
    trained_on = [rows[name].groups_of(some) for name, some in training.items()]
    used = np.concatenate([tested, rows[target].groups_of(train), *trained_on])
    splits = {target: Split(train, test)}
    for name, mine in training.items():
        _, held_out = sizes[name]
        unseen = rows[name].outside(used, rows[name].left_by(mine))
        splits[name] = Split(mine, unseen[:held_out])
    return splits


def whole_splits(data: Dataset, target: str, domains: Mapping[str, DomainData], *, seed: int) -> dict[str, Split]:
    """All examples of each domain for training, except official test examples; none is tested or held out.

    Examples come in the order in which `split` would take them where they have no groups.
    """
    splits = {}
    for name, domain in domains.items():
        rows = permutation(len(domain.y), data.name, target, seed, name)
        if domain.test is not None:
            rows = rows[~np.asarray(domain.test, bool)[rows]]
        splits[name] = Split(rows, rows[:0])
    return splits


def extent_of(domain: DomainData) -> Extent:
    """The number of examples of a domain, or of its parts if some are official test examples."""
    if domain.test is None:
        return len(domain.y)
    tested = int(np.asarray(domain.test, bool).sum())
    return len(domain.y) - tested, tested


def permutation(size: int, dataset: str, target: str, seed: int, domain: str) -> Array:
    """A random order of `size` rows, int64; the same on every machine and with every numpy."""
    key = int.from_bytes(_digest("split", dataset, target, seed, domain)[:16], "little")
    return np.argsort(np.random.Philox(key=key).random_raw(size), kind="stable")


def _digest(*identity: str | int) -> bytes:
    return hashlib.sha256(json.dumps(identity).encode()).digest()


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a domain.

    Attributes:
        order: all of them, in random order, those of a group together.
        official: a mask of the official test examples, None if there are none.
        groups: the number of each row's group, (n,) uint64, the same in every domain; None if it has no groups.
    """

    order: Array
    official: Array | None
    groups: Array | None

    @classmethod
    def of(cls, run: tuple[str, str, int], name: str, domain: DomainData, by_class: Stratify) -> _Rows:
        official = None if domain.test is None else np.asarray(domain.test, bool)
        order = permutation(len(domain.y), *run, name)
        if domain.groups is None:
            return cls(order, official, None)
        names, group_of = np.unique(domain.groups, return_inverse=True)
        number_of = np.array([_number(run, str(group)) for group in names], np.uint64)
        numbers = number_of[group_of]
        turns = _turns(numbers, domain.y, by_class) if by_class else numbers
        by_turn_then_group = np.lexsort((numbers[order], turns[order]))
        return cls(order[by_turn_then_group], official, numbers)

    @property
    def pool(self) -> Array:
        """Rows for training: all except official test examples."""
        if self.official is None:
            return self.order
        return self.order[~self.official[self.order]]

    def left_by(self, train: Array) -> Array:
        """Rows for the test or to hold out: the official test examples, or all that are not trained on."""
        if self.official is not None:
            return self.order[self.official[self.order]]
        left = np.ones(len(self.order), bool)
        left[train] = False
        return self.order[left[self.order]]

    def groups_of(self, rows: Array) -> Array:
        """The numbers of the groups of some rows."""
        if self.groups is None:
            return np.zeros(0, np.uint64)
        return np.unique(self.groups[rows])

    def outside(self, groups: Array, rows: Array) -> Array:
        """The given rows without those in these groups."""
        if self.groups is None:
            return rows
        return rows[~np.isin(self.groups[rows], groups)]


def _of_target(data: Dataset, target: str, rows: _Rows, trained: int, tested: int) -> tuple[Array, Array]:
    """Training and test rows; with groups the test has the last rows, so that another training size changes none."""
    if is_transductive(data):
        return rows.order, rows.order
    train = rows.pool[:trained]
    rest = rows.outside(rows.groups_of(train), rows.left_by(train))
    if not len(rest):
        what = f"target {target!r} has no test examples left in groups that it does not train on"
        raise DataError(f"dataset {data.name}: {what}; set a smaller `train`")
    test = rest[:tested] if rows.groups is None else rest[-tested:]
    return train, test


def _of_source(data: Dataset, source: str, rows: _Rows, trained: int, tested: Array) -> Array:
    """Training rows, in no group of the test."""
    pool = rows.outside(tested, rows.pool)
    if len(pool) < trained:
        what = f"source {source!r} has {len(pool)} examples to train on in groups that are not tested"
        raise DataError(f"dataset {data.name}: {what}, fewer than train = {trained}; set a smaller `train` or `test`")
    return pool[:trained]


def _turns(numbers: Array, classes: Array, by_class: Stratify) -> Array:
    """For each row how many groups of the same class come before its own, (n,) float64; with "shares", their share."""
    groups, group_of = np.unique(numbers, return_inverse=True)
    kinds, kind_of = np.unique(classes, return_inverse=True)  # -1 in a domain without labels
    rows_of = np.zeros((len(groups), len(kinds)), np.int64)
    np.add.at(rows_of, (group_of, kind_of), 1)
    class_of_group = rows_of.argmax(1)
    turns = np.zeros(len(groups), np.float64)
    for kind in np.unique(class_of_group):
        mine = class_of_group == kind
        before = np.arange(mine.sum())
        turns[mine] = before / len(before) if by_class == "shares" else before
    return np.asarray(turns[group_of])


def _number(run: tuple[str, str, int], group: str) -> int:
    """The place of a group in the order of all possible ones; two of them share a number with a chance of 2^-64."""
    return int.from_bytes(_digest("group", *run, group)[:8], "little")


def _check_shared(data: Dataset, domains: Iterable[_Rows]) -> None:
    """Refuses groups in several domains if the dataset does not say so, since checks before any run rely on it."""
    numbers = np.concatenate([rows.groups_of(rows.order) for rows in domains])
    if len(np.unique(numbers)) < len(numbers) and not data.shared_groups:
        what = "some of its groups are in several domains, but its `shared_groups` is False"
        raise DataError(f"dataset {data.name}: {what}; report it to its author")
