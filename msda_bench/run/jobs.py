"""Jobs: the cells that are trained together, the unit of scheduling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from msda_bench.suite.cell import Cell, canonical_json


@dataclass(frozen=True)
class Job:
    """Cells to train together.

    Attributes:
        keys: their keys, all different.
        cells: the cells, in the order of the keys.
        attempt: 1 at first; raised when a process that trained it was lost.
    """

    keys: tuple[str, ...]
    cells: tuple[Cell, ...]
    attempt: int = 1

    def only(self, keys: set[str]) -> Job:
        """The job with only those of its cells."""
        kept = [(key, cell) for key, cell in zip(self.keys, self.cells, strict=True) if key in keys]
        return replace(self, keys=tuple(key for key, _ in kept), cells=tuple(cell for _, cell in kept))

    def halves(self) -> Iterator[Job]:
        """Two jobs with half of the cells each, both at their first attempt."""
        middle = len(self.keys) // 2
        yield Job(self.keys[:middle], self.cells[:middle])
        yield Job(self.keys[middle:], self.cells[middle:])


def make_jobs(cells: Mapping[str, Cell]) -> list[Job]:
    """A job for each cell; cells with the same split, whose data are prepared once, come one after the other.

    Args:
        cells: by key.
    """
    splits: dict[tuple[object, ...], list[Job]] = {}
    for key, cell in cells.items():
        split = (cell.dataset.name, canonical_json(cell.dataset.params), cell.fingerprint, cell.target, cell.seed)
        splits.setdefault(split, []).append(Job((key,), (cell,)))
    return [job for group in splits.values() for job in group]
