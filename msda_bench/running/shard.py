"""Shards: parts of a suite for machines that know nothing of each other, such as the tasks of an array job."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from msda_bench.errors import BenchError
from msda_bench.suite.plan import PlannedCell

_FORM = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


@dataclass(frozen=True)
class Shard:
    """One of `count` parts of a suite, which are disjoint and together are the whole.

    Attributes:
        index: which one, from 0.
        count: of how many.
    """

    index: int
    count: int

    def of(self, cells: Iterable[PlannedCell]) -> tuple[PlannedCell, ...]:
        """Its part, in the same order: every `count`-th in the order of the keys.

        It depends on nothing but the cells, not on what is stored. The parts differ by one key at most, and since keys
        are hashes, each holds something of every method.
        """
        planned = tuple(cells)
        mine = set(sorted({cell.key for cell in planned})[self.index :: self.count])
        return tuple(cell for cell in planned if cell.key in mine)


def parse_shard(text: str) -> Shard:
    """Reads `i/n`.

    Raises:
        BenchError: it is none.
    """
    found = _FORM.fullmatch(text)
    if found is None or not int(found[1]) < int(found[2]):
        raise BenchError(f"--shard {text!r}: write I/N, part I of N, counted from 0, such as 0/4 to 3/4")
    return Shard(int(found[1]), int(found[2]))
