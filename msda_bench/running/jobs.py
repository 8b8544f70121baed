"""Jobs: the cells that are trained together, the unit of scheduling."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from msda_bench.suite.cell import Cell, canonical_json


@dataclass(frozen=True)
class Job:
    """Cells to train together, by their keys, all different; `attempt` counts the processes that it was given to."""

    keys: tuple[str, ...]
    cells: tuple[Cell, ...]
    attempt: int = 1

    def only(self, keys: Collection[str]) -> Job:
        """The job with only those of its cells."""
        kept = {key: cell for key, cell in zip(self.keys, self.cells, strict=True) if key in keys}
        return replace(self, keys=tuple(kept), cells=tuple(kept.values()))

    def halves(self) -> Iterator[Job]:
        """Two jobs with half of the cells each, both at their first attempt."""
        middle = len(self.keys) // 2
        yield Job(self.keys[:middle], self.cells[:middle])
        yield Job(self.keys[middle:], self.cells[middle:])


def make_jobs(cells: Mapping[str, Cell], most: int = 1) -> list[Job]:
    """Jobs of cells, by key, that may be trained together, at most so many each.

    A job of one cell, as a CPU has it: cells with the same split, whose data are prepared once, come one after the
    other. Jobs of several, as a GPU has them: of cells that differ in seed, domains and numbers alone; the engine
    decides which of them it stacks.
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
