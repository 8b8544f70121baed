"""Says of a first suite whether rows that are tested on are equal or near to rows that are trained on."""

from __future__ import annotations

import contextlib
import math
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from msda_bench.api import Dataset, DomainData
from msda_bench.data import LocalFiles
from msda_bench.data.near import digests
from msda_bench.engine.loaded import load_domain
from msda_bench.errors import BenchError
from msda_bench.plugins import Registry
from msda_bench.results.words import first_of
from msda_bench.running.data import domains_of, used
from msda_bench.running.leaks import MOST, find_leaks
from msda_bench.suite.expand import Expansion
from msda_bench.suite.run_spec import RunSpec

_MOST_PRODUCTS = 10**10
"""Products of two numbers that take seconds; comparing rows that takes more is left to `data leaks`."""
_MOST_PAIRS = 400
"""Pairs of a target and a domain whose rows are compared in seconds, however few they are."""
_DIFFERENT = 0.8
"""The share of different rows below which equal ones may be so by chance."""


def seen_rows(expansion: Expansion, registry: Registry, suite: Path) -> Iterator[str]:
    """A line on what `data leaks` finds in the suite, or on the command alone if comparing rows takes long."""
    command = f"`{shlex.join(['msda-bench', 'data', 'leaks', str(suite)])}`"
    for dataset, cells in used("dataset", expansion.cells.values(), registry):
        # What cannot be loaded or split is reported by `validate` and `run`.
        with contextlib.suppress(BenchError), registry.entry("dataset", dataset.name).plugin_errors("cannot be loaded"):
            yield _line(dataset, cells, command)


def _line(dataset: Dataset, cells: list[RunSpec], command: str) -> str:
    targets, wanted = {cell.target for cell in cells}, domains_of(dataset, cells)
    too_many = f"rows: too many to compare here; {command} looks for those that are tested on and trained on"
    if len(targets) * len(wanted) > _MOST_PAIRS:
        return too_many
    files = LocalFiles(dataset=dataset.name)
    domains = {name: load_domain(dataset, name, files) for name in wanted}
    if _products(domains, targets) > _MOST_PRODUCTS:
        return too_many
    rows = find_leaks(dataset, cells, domains)
    found = rows[rows["leak"]]
    if not len(found):
        return f"rows: hardly any that is tested on equals, or nearly equals, one that is trained on ({command})"
    prints = np.concatenate([digests(data.x) for data in domains.values()])
    if rows["near"].isna().all() and len(np.unique(prints)) < _DIFFERENT * len(prints):
        return f"rows: many are equal, as usual where values are few; {command} counts those that are trained on"
    shares = (found["near_seen"] / found["compared"]).fillna(found["equal_seen"] / found["tested"])
    pairs = (f"{target} in {domain}" for target, domain in zip(found["target"], found["domain"], strict=True))
    where = first_of(f"{pair} ({100 * share:.0f} %)" for pair, share in zip(pairs, shares, strict=True))
    what = f"rows that are tested on equal, or nearly equal, rows that are trained on: {where}"
    remedy = "`duplicates: drop` leaves copies out, or name by --group which rows belong together"
    return f"leak: {what}; {command} counts them; {remedy}"


def _products(domains: dict[str, DomainData], targets: set[str]) -> int:
    """How many products comparing rows takes."""
    counts = {name: len(data.y) for name, data in domains.items()}
    width = max(int(math.prod(data.x.shape[1:])) for data in domains.values())
    return 2 * width * sum(counts.values()) * sum(min(counts[target], MOST) for target in targets)
