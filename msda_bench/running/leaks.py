"""Looks for test rows of a suite's runs that training has seen elsewhere: equal, near, or of the same number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from msda_bench.api import Array, Dataset, DomainData
from msda_bench.component.sizes import is_transductive
from msda_bench.data.near import Nearest, Vectors, digests, vectors
from msda_bench.data.splits import split_domains
from msda_bench.errors import DataError
from msda_bench.suite.cell import Cell

SUSPECTED = 0.01
"""The share of a target's test rows from which on training is said to have seen them."""
_MOST, _NUMBERS = 2000, 1 << 26
"""The maximum numbers of test rows, and of their values, whose nearest rows are looked for."""
_NEAR = 0.25
"""A row is near if its distance is at most this part of the usual one to the nearest row of the same domain."""
_BEYOND = 5
"""Rows are paired if as many standard deviations, and rows, more than by chance have the same number."""


@dataclass(frozen=True)
class Pair:
    """A target's test rows beside the rows of a source, or beside the target's other rows.

    Attributes:
        domain: the source, or the target.
        equal: test rows, of all, that are equal to a row there.
        equal_trained: those that are equal to one that is trained on.
        near: compared test rows that are equal or near to a row there; None if distances tell nothing.
        near_trained: those that are equal or near to one that is trained on.
        same: compared test rows whose nearest row in the source has the same number; None for the target itself.
        chance: what `same` would be on average if the rows of each class were in random order.
        same_trained: compared test rows whose row of the same number is trained on; None unless rows are paired.
    """

    domain: str
    equal: int
    equal_trained: int
    near: int | None
    near_trained: int | None
    same: int | None
    chance: float | None
    same_trained: int | None


@dataclass(frozen=True)
class Target:
    """How many test rows of a target training has seen in the runs of one seed.

    Attributes:
        name: the target.
        seed: of the split.
        tested: all test rows.
        compared: those whose nearest rows were looked for.
        in_sources: compared rows with an equal, near or paired row among the training rows of a source.
        in_target: those with an equal or near row among the target's own training rows; 0 if the protocol is
            transductive, which trains on the test rows themselves.
        in_groups: test rows, of all, with a row of their group among the training rows of any domain; None if the
            target has no groups.
        pairs: with the target itself, then with each source.
    """

    name: str
    seed: int
    tested: int
    compared: int
    in_sources: int
    in_target: int
    in_groups: int | None
    pairs: tuple[Pair, ...]

    @property
    def sources_leak(self) -> bool:
        """Whether the sources show enough test rows, with labels, to suspect a leak."""
        return self.in_sources >= SUSPECTED * self.compared

    @property
    def itself_leaks(self) -> bool:
        """Whether the target's own training rows show enough test rows to suspect a leak."""
        return self.in_target >= SUSPECTED * self.compared

    @property
    def leaks(self) -> bool:
        """Whether a leak of any kind is suspected."""
        return self.sources_leak or self.itself_leaks or bool(self.in_groups)


def find_leaks(dataset: Dataset, cells: Sequence[Cell], domains: Mapping[str, DomainData]) -> tuple[Target, ...]:
    """Compares the test rows of each target with the training rows of its runs, at the smallest of their seeds.

    Args:
        dataset: the dataset.
        cells: the runs on it.
        domains: all their domains, loaded.

    Raises:
        DataError: a domain is too small for the split, or rows of two domains have different shapes.
    """
    runs = [_Run.of(dataset, name, cells, domains) for name in dict.fromkeys(cell.target for cell in cells)]
    try:
        rows = vectors({name: data.x for name, data in domains.items()})
    except DataError as error:
        raise DataError(*(f"dataset {dataset.name}: {line}" for line in error.lines)) from None
    nearest = {run.target: {name: run.search(name, rows) for name in run.trained} for run in runs}
    for name, there in rows.items():
        searches = [of_target[name] for of_target in nearest.values() if name in of_target]
        for part, chunk in there.chunks():
            for search in searches:
                search.see(part, chunk)
    prints = {name: digests(data.x) for name, data in domains.items()}
    telling = all(domain.telling for domain in rows.values())
    return tuple(_Results(run, domains, prints, nearest[run.target], telling).target() for run in runs)


@dataclass(frozen=True, eq=False)
class _Run:
    """The split of a target at one seed.

    Attributes:
        target: the target.
        seed: of the split.
        test: the rows that are tested on, in random order.
        trained: for the target, then for each source, a (n,) bool mask of the rows that are trained on.
    """

    target: str
    seed: int
    test: Array
    trained: Mapping[str, Array]

    @classmethod
    def of(cls, dataset: Dataset, target: str, cells: Iterable[Cell], domains: Mapping[str, DomainData]) -> _Run:
        mine = [cell for cell in cells if cell.target == target]
        seed = min(cell.seed for cell in mine)
        used = {name: domains[name] for name in (target, *(source for cell in mine for source in cell.sources))}
        splits = split_domains(dataset, target, used, seed=seed)
        trained = {name: np.zeros(len(data.y), bool) for name, data in used.items()}
        for name, mask in trained.items():
            mask[splits[name].train] = name != target or not is_transductive(dataset)
        return cls(target, seed, splits[target].test, trained)

    def search(self, name: str, rows: Mapping[str, Vectors]) -> Nearest:
        """A search of a domain for the rows nearest to the first test rows."""
        mine = self.test[: max(1, min(_MOST, _NUMBERS // max(1, rows[self.target].width)))]
        return Nearest(mine, rows[self.target].take(mine), self.trained[name], inside=name == self.target)


@dataclass(frozen=True, eq=False)
class _Results:
    """The finished searches of a run."""

    run: _Run
    domains: Mapping[str, DomainData]
    prints: Mapping[str, Array]
    nearest: Mapping[str, Nearest]
    telling: bool

    def target(self) -> Target:
        """What they show together."""
        run = self.run
        itself, *sources = (self._pair(name) for name in run.trained)
        seen = np.any([mask for _, mask in sources], axis=0)
        pairs = tuple(pair for pair, _ in (itself, *sources))
        counts = len(run.test), len(seen), int(seen.sum()), int(itself[1].sum())
        return Target(run.target, run.seed, *counts, self._in_groups(), pairs)

    def _in_groups(self) -> int | None:
        groups = {name: data.groups for name, data in self.domains.items() if data.groups is not None}
        if self.run.target not in groups:
            return None
        trained = [groups[name][mask].astype(str) for name, mask in self.run.trained.items() if name in groups]
        return int(np.isin(groups[self.run.target][self.run.test].astype(str), np.concatenate(trained)).sum())

    def _pair(self, name: str) -> tuple[Pair, Array]:
        """The numbers, and which of the compared rows training has seen in this domain."""
        run, nearest = self.run, self.nearest[name]
        mine, there = self.prints[run.target][run.test], self.prints[name]
        equal, seen = (
            np.isin(mine, _repeated(there) if nearest.inside else there),
            np.isin(mine, there[nearest.trained]),
        )
        equals = int(equal.sum()), int(seen.sum())
        equal, seen = equal[: len(nearest.rows)], seen[: len(nearest.rows)]
        near: tuple[int | None, int | None] = None, None
        if self.telling:
            usual = _NEAR * float(np.median(self.nearest[run.target].distance))
            seen = seen | (nearest.distance_trained <= usual)
            near = int((equal | (nearest.distance <= usual)).sum()), int(seen.sum())
        same, chance, same_trained = None, None, None
        if not nearest.inside:
            twins = max(self._twins(name), key=lambda rows: int((nearest.nearest == rows).sum()))
            same, chance = int((nearest.nearest == twins).sum()), self._chance(name, twins)
            if same > chance + _BEYOND * (math.sqrt(chance) + 1):
                paired = (twins >= 0) & nearest.trained[twins]
                same_trained, seen = int(paired.sum()), seen | paired
        return Pair(name, *equals, *near, same, chance, same_trained), seen

    def _twins(self, name: str) -> Iterator[Array]:
        """The row of a source with the same number, -1 if there is none; counted in the official part, too."""
        rows, mine, there = self.nearest[name].rows, self.domains[self.run.target], self.domains[name]
        yield np.where(rows < len(there.y), rows, -1)
        if mine.test is not None and there.test is not None:
            parts = {part: np.flatnonzero(there.test == part) for part in (False, True)}
            ranks = np.where(mine.test, mine.test.cumsum(), (~mine.test).cumsum()) - 1
            twins = np.full(len(rows), -1)
            for part, members in parts.items():
                here = (mine.test[rows] == part) & (ranks[rows] < len(members))
                twins[here] = members[ranks[rows][here]]
            yield twins

    def _chance(self, name: str, twins: Array) -> float:
        """How many nearest rows would be the twin if rows of one class, or all for regression, were interchangeable."""
        y, nearest = self.domains[name].y, self.nearest[name].nearest
        kinds = y if y.dtype.kind in "iu" else np.zeros(len(y), np.int64)
        alike = (twins >= 0) & (kinds[nearest] == kinds[twins])
        return float(f"{(alike / np.bincount(kinds)[kinds[nearest]]).sum():.6g}")


def _repeated(prints: Array) -> Array:
    """Those that several rows have."""
    values, counts = np.unique(prints, return_counts=True)
    return values[counts > 1]
