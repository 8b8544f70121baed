"""Tells the result folder of an edited suite from that of another project, whose suite has the same name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

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
    def of(cls, runs: Iterable[tuple[str, str, Iterable[str]]]) -> Data:
        """Of runs, each with the name and the fingerprint of its dataset and its domains."""
        datasets, fingerprints, domains = set[str](), set[str](), set[str]()
        for dataset, fingerprint, own in runs:
            datasets.add(dataset)
            fingerprints.add(fingerprint)
            domains.update(own)
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
    now = Data.of((run.dataset.name, run.fingerprint, (run.target, *run.sources)) for run in cells.values())
    if former.fingerprints & now.fingerprints:
        return False
    fewest = min(len(former.domains), len(now.domains))
    if 2 * len(former.domains & now.domains) < fewest:
        what = f"its {len(store.results)} stored runs are of other data ({former}) than this suite's ({now})"
        raise BenchError(f"{store.folder}: {what}; write another `name` into the suite, or add --out FOLDER")
    return True


def _stored(store: Store, keys: Iterable[str]) -> Iterator[tuple[str, str, Iterable[str]]]:
    for key in keys:
        record = store.read(key)
        if record is not None:
            run = record.cell
            dataset = run.get("dataset", {}).get("name", "")
            yield dataset, run.get("fingerprint", ""), (run.get("target", ""), *run.get("sources", ()))
