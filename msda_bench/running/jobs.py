"""Jobs: cells that are trained together, the unit of scheduling."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from msda_bench.suite.cell import Cell, canonical_json


@dataclass(frozen=True)
class Job:
    """Cells to train together, by their keys, which differ; `attempt` counts the processes that have received it."""

    keys: tuple[str, ...]
    cells: tuple[Cell, ...]
    attempt: int = 1

    def only(self, keys: Collection[str]) -> Job:
        """The job with only these of its cells."""
        kept = {key: cell for key, cell in zip(self.keys, self.cells, strict=True) if key in keys}
        return replace(self, keys=tuple(kept), cells=tuple(kept.values()))

    def halves(self) -> Iterator[Job]:
        """Two jobs with half of the cells each, both at their first attempt."""
        middle = len(self.keys) // 2
        yield Job(self.keys[:middle], self.cells[:middle])
        yield Job(self.keys[middle:], self.cells[middle:])


def make_jobs(cells: Mapping[str, Cell], most: int = 1) -> list[Job]:
    """Jobs of cells, by key, that may be trained together, with at most `most` cells each.

    Jobs of one cell, for a CPU: cells with the same split, whose data are prepared once, follow each other. Jobs of
    several, for a GPU: their cells differ only in seed, domains and numbers; the engine decides which of them to stack.
    """
    alike = _split if most == 1 else _family
    groups: dict[str, list[str]] = {}
    for key, cell in cells.items():
        groups.setdefault(alike(cell), []).append(key)
    shares = [keys[start : start + most] for keys in groups.values() for start in range(0, len(keys), most)]
    return [Job(tuple(keys), tuple(cells[key] for key in keys)) for keys in shares]


def _split(cell: Cell) -> str:
    return canonical_json([cell.dataset.name, cell.dataset.params, cell.fingerprint, cell.target, cell.seed])


def _family(cell: Cell) -> str:
    plain = cell.to_json()
    for name in ("seed", "target", "sources", "mu"):
        del plain[name]
    for owner in ("aggregator", "scheme"):
        if plain[owner] is not None:
            del plain[owner]["params"]
    return canonical_json(plain)
