"""Finds targets with too few test examples to show a difference, which the mean over targets leaves out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pandas as pd

from msda_bench.results.runs import ok_runs
from msda_bench.results.words import counted, first_of, name_of

FEWEST_TESTED = 10
"""With fewer test examples at a target, one answer moves its score by more than ten points."""


def small_tests(runs: pd.DataFrame) -> dict[str, int]:
    """The number of test examples of each target that has too few, the most of any run, by target.

    `runs` are those of one experiment. Targets without labels have no test, and are not among them.
    """
    ok = ok_runs(runs)
    tested = ok[ok["n_test"].to_numpy(float, na_value=0) > 0]
    most = tested.groupby("target", observed=True, sort=False)["n_test"].max()
    return {str(target): int(size) for target, size in most.items() if size < FEWEST_TESTED}


def averaged_targets(targets: Sequence[str], small: Collection[str]) -> tuple[str, ...]:
    """The targets over which means are taken: those with enough test examples, or all if none has enough."""
    large = tuple(target for target in targets if target not in small)
    return large or tuple(targets)


def small_tests_notes(targets: Sequence[str], small: Mapping[str, int]) -> Iterator[str]:
    """A sentence on the targets with too few test examples, if there are any."""
    if not small:
        return
    low = min(small.values())
    high = max(small.values())
    rows = counted(high, "test row") if low == high else f"{low} to {high} test rows"
    verb = "has" if len(small) == 1 else "have"
    which = f"{len(small)} of {counted(len(targets), 'target')} {verb} {rows} ({first_of(map(name_of, small))})"
    result = "they are shown, but they are not in the average and its tests"
    if len(small) == len(targets):
        result = "no test here can show a difference"
    yield f"{which}, too few to compare methods by: {result}"
