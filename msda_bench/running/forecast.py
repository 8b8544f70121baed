"""Says before runs begin how long they will take."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msda_bench.errors import BenchError
from msda_bench.results.words import counted

if TYPE_CHECKING:
    import pandas as pd

    from msda_bench.store import Store
    from msda_bench.suite.expand import Expansion
    from msda_bench.suite.run_spec import RunSpec

_MANY = 1000
_MANY_SOURCES = 20_000
"""From so many runs, or sources of all runs, the hours are estimated."""


def forecast(suite: object, expansion: Expansion, to_train: Mapping[str, RunSpec], store: Store | None) -> str | None:
    """A line on runs to train if there are many: their hours, estimated from stored runs, or how to estimate them."""
    sources = sum(len(run.sources) for run in to_train.values())
    if len(to_train) < _MANY and sources < _MANY_SOURCES:
        return None
    runs = f"{counted(len(to_train), 'run')} with {round(sources / len(to_train))} sources each"
    hours = hours_text(expansion, to_train, stored_runs(store))
    if hours is None:
        name = shlex.quote(str(suite))
        more = f"`msda-bench run {name} --limit 20` times some, then `msda-bench run {name} --dry-run` says the hours"
        hours = f"may take hours or days: {more}"
    return f"{runs} {hours}; fewer targets or seeds take less"


def hours_text(expansion: Expansion, to_train: Mapping[str, RunSpec], runs: pd.DataFrame | None) -> str | None:
    """How long runs take, as those of a frame did; None if it has none of an experiment's data."""
    from msda_bench.results.power import hours_of

    hours = None if runs is None else hours_of(expansion, to_train, runs)
    if hours is None:
        return None
    return f"take some {float(f'{hours:.2g}'):,g} hours of a core or GPU, as the stored ones took"


def stored_runs(store: Store | None) -> pd.DataFrame | None:
    """The runs of a result folder, also those that its suite no longer has; None if it has none."""
    from msda_bench.results.frame import load_results

    if store is None or not store.refresh().results:
        return None
    try:
        return load_results(store.folder)
    except BenchError:  # the tables after the runs will say it
        return None
