"""Tells the result folder of an edited suite from that of another project, whose suite has the same name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from msda_bench.errors import BenchError
from msda_bench.store.store import Store
from msda_bench.suite.run_spec import RunSpec

_MOST = 1000
"""So many records tell of what data a folder is; keys are hashes, so they are a random choice."""
_SHOWN = 4


class Data(NamedTuple):
    """The data of some runs: names of datasets, their fingerprints, and all domains."""

    datasets: frozenset[str]
    fingerprints: frozenset[str]
    domains: frozenset[str]

    @classmethod
    def of(cls, cells: Iterable[Mapping[str, Any]]) -> Data:
        """Of cells as plain JSON values."""
        datasets, fingerprints, domains = set[str](), set[str](), set[str]()
        for cell in cells:
            datasets.add(cell.get("dataset", {}).get("name", ""))
            fingerprints.add(cell.get("fingerprint", ""))
            domains |= {cell.get("target", ""), *cell.get("sources", ())}
        return cls(frozenset(datasets), frozenset(fingerprints), frozenset(domains))

    def __str__(self) -> str:
        shown = sorted(self.domains)
        more = ", ..." if len(shown) > _SHOWN else ""
        return f"{', '.join(sorted(self.datasets)[:_SHOWN])}: {', '.join(shown[:_SHOWN])}{more}"


def data_changed(store: Store, cells: Mapping[str, RunSpec]) -> bool:
    """Whether a folder has results, but none of these cells and none of the same data.

    Raises:
        BenchError: most domains are others, too, so that the folder is another project's.
    """
    if not store.refresh().results or store.results.keys() & cells.keys():
        return False
    former = Data.of(_stored(store, islice(sorted(store.results), _MOST)))
    now = Data.of(_shown(cells.values()))
    if former.fingerprints & now.fingerprints:
        return False
    fewest = min(len(former.domains), len(now.domains))
    if 2 * len(former.domains & now.domains) < fewest:
        what = f"its {len(store.results)} stored runs are of other data ({former}) than this suite's ({now})"
        raise BenchError(f"{store.folder}: {what}; write another `name` into the suite, or add --out FOLDER")
    return True


def _stored(store: Store, keys: Iterable[str]) -> Iterable[Mapping[str, Any]]:
    for key in keys:
        if (record := store.read(key)) is not None:
            yield record.cell


def _shown(cells: Collection[RunSpec]) -> Iterable[Mapping[str, Any]]:
    for cell in cells:
        yield {
            "dataset": {"name": cell.dataset.name},
            "fingerprint": cell.fingerprint,
            "target": cell.target,
            "sources": cell.sources,
        }
