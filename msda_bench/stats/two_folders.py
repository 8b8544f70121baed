"""The same methods in two result folders, compared over the seeds that both have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msda_bench.stats.difference import Difference, adjusted, difference
from msda_bench.stats.scores import Column, Scores


def compare_sides(a: Scores, b: Scores, methods: Sequence[tuple[str, str]]) -> tuple[Difference, ...]:
    """Compares methods of one folder with methods of another.

    Args:
        a: an experiment of folder A.
        b: the experiment of folder B that stands beside it, of the same task; what is averaged over targets is over
            those that both have.
        methods: which method of A with which of B.

    Returns:
        Target by target, then their average; methods in the order given.
    """
    targets = tuple(target for target in a.experiment.targets if target in b.experiment.targets)
    a, b = (replace(side, experiment=replace(side.experiment, targets=targets)) for side in (a, b))
    columns: tuple[Column, ...] = (*targets, None) if targets else ()
    return tuple(one for column in columns for one in adjusted([difference(a, b, pair, column) for pair in methods]))
