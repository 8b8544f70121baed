"""Says before thousands of runs begin how long they will take."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msda_bench.errors import BenchError
from msda_bench.results.words import counted

if TYPE_CHECKING:
    from msda_bench.store import Store
    from msda_bench.suite.expand import Expansion
    from msda_bench.suite.run_spec import RunSpec

_MANY = 1000
_MANY_SOURCES = 20_000
"""Runs of which the hours are said: so many, or with so many sources in all."""


def forecast(suite: object, expansion: Expansion, missing: Mapping[str, RunSpec], store: Store | None) -> str | None:
    """A line on the missing runs if there are many: their hours, from those that are stored, or how to learn them."""
    from msda_bench.results.frame import read_runs
    from msda_bench.results.power import hours_of

    sources = sum(len(cell.sources) for cell in missing.values())
    if len(missing) < _MANY and sources < _MANY_SOURCES:
        return None
    runs = f"{counted(len(missing), 'run')} with {round(sources / len(missing))} sources each"
    hours = None
    if store is not None and store.refresh().results:
        with contextlib.suppress(BenchError):  # the tables after the runs will say it
            hours = hours_of(expansion, missing, read_runs(store, expansion.plan))
    if hours is not None:
        took = f"take some {float(f'{hours:.2g}'):,g} hours of a core or GPU, as the stored ones took"
        return f"{runs} {took}; fewer targets or seeds take less"
    name = shlex.quote(str(suite))
    first = f"`msda-bench run {name} --limit 20` times some, then `msda-bench plan {name}` says the hours of all"
    return f"{runs} may take hours or days: {first}; fewer targets or seeds take less"
