"""Writes the verdict on several experiments: which methods gain over the baseline on how many, and the mean ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from msda_bench.results.across import Across, standings
from msda_bench.results.decision import BETTER, WORSE, with_method
from msda_bench.results.differences import (
    UNDECIDED,
    Difference,
    GainUnit,
    Groups,
    answer,
    capitalised,
    headroom_sentence,
    largest,
    needed_pairs,
    none_gains,
    other_groups,
    some_gain,
)
from msda_bench.results.words import counted, first_of, name_of

_UNTESTED = "too few seeds for a test"
_MOST_GAINING = 6
"""Up to this many methods that gain on some datasets are all named; of more, the `_LARGEST` gains."""
_LARGEST = 3


def verdict_across(across: Across) -> tuple[str, ...]:
    """The sentences on several experiments: gains over the baseline, headroom, power, mean ranks."""
    return (*_over_baseline(across), *_by_rank(across))


def _over_baseline(across: Across) -> Iterator[str]:
    unit = GainUnit("{:+.2f}", "points in the mean")
    base = name_of(across.baseline)
    groups: Groups = {}
    headroom = []
    is_tested = False
    for row in _mean_gains(across):
        difference = _mean_gain(across, row)
        if row["method"] == across.headroom:
            headroom.append(difference)
        if not row["reference"]:
            groups.setdefault(_counts(row), []).append(difference)
            is_tested = is_tested or bool(row["n_tested"])
    if not groups:
        return
    yield _answer_across(across, unit, base, groups) if is_tested else answer(unit, base, groups, _UNTESTED)
    for difference in headroom:
        yield headroom_sentence(unit, difference, is_shown=difference.low > 0)
    if is_tested:
        yield from other_groups(unit, base, groups)
        yield from _power_across(across)


def _mean_gains(across: Across) -> list[dict[Any, Any]]:
    """The standings with a mean gain, the largest first."""
    table = standings(across).dropna(subset="mean_gain")
    return table.sort_values("mean_gain", ascending=False, kind="stable").to_dict("records")


def _mean_gain(across: Across, row: Mapping[Any, Any]) -> Difference:
    """The mean gain of a row of the standings."""
    n = len(across.experiments)
    of = f" ({row['n_experiments']} of {n})" if row["n_experiments"] < n else ""
    return Difference(row["method"], row["mean_gain"], row["mean_gain_low"], row["mean_gain_high"], of)


def _answer_across(across: Across, unit: GainUnit, base: str, groups: Groups) -> str:
    """Whether methods gain over the baseline in some experiments, which, and how much."""
    n_experiments = len(across.experiments)
    experiments = counted(n_experiments, "dataset" if n_experiments == len(across.datasets) else "experiment")
    n = sum(len(rows) for rows in groups.values())
    gaining = {kind: rows for kind, rows in groups.items() if kind.startswith(BETTER)}
    if not gaining:
        return f"{none_gains(n, base)} on any of {experiments}; {largest(unit, groups)}."
    count = sum(len(rows) for rows in gaining.values())
    text = f"{some_gain(count, n, base)} on some of {experiments}"
    if count > _MOST_GAINING:
        return f"{text}. {_largest_gains(unit, gaining)}."
    gains = [f"{kind}: {unit.gains(rows)}" for kind, rows in gaining.items()]
    return f"{text}, {'; '.join(gains)} {unit.label}."


def _largest_gains(unit: GainUnit, groups: Groups) -> str:
    """The largest gains, each with what its method is, and the number of the others."""
    every = [(difference, kind) for kind, found in groups.items() for difference in found]
    every.sort(key=lambda pair: pair[0].size, reverse=True)
    best = [f"{unit.gain(difference)}, {kind}" for difference, kind in every[:_LARGEST]]
    others = len(every) - _LARGEST
    return f"The largest mean gains, in points: {'; '.join(best)}. The mean gains of the other {others} are smaller"


def _counts(row: Mapping[Any, Any]) -> str:
    """In how many experiments a method is better and worse than the baseline."""
    if not row["n_tested"]:
        return _UNTESTED
    counts = [f"{kind} on {row[f'n_{kind}']}" for kind in (BETTER, WORSE) if row[f"n_{kind}"]]
    if not counts:
        return UNDECIDED
    return f"{' and '.join(counts)} of {row['n_tested']}"


def _power_across(across: Across) -> Iterator[str]:
    """States the smallest true gain that the tests of an experiment would find."""
    by_experiment: dict[str, list[float]] = {}
    for gain in across.gains:
        if gain["detectable"] is not None:
            by_experiment.setdefault(gain["experiment"], []).append(gain["detectable"])
    if not by_experiment:
        return
    sizes = [median(detectable) for detectable in by_experiment.values()]
    low = f"{min(sizes):.1f}"
    high = f"{max(sizes):.1f}"
    size = low if low == high else f"{low} to {high}"
    yield f"The tests have 80 % power for a true gain in one of them of {size} points."


def _by_rank(across: Across) -> Iterator[str]:
    """Names the best mean rank over the datasets, and the methods that differ significantly from the best."""
    if not across.concludes or not across.mean_ranks:
        return
    best = across.methods[0]
    datasets = counted(across.n_ranked, "dataset")
    rank = f"{across.mean_ranks[best]:.2f} of {len(across.methods)}"
    text = f"{name_of(best)} has the best mean rank over {datasets}, {rank}"
    if not across.separates:
        yield f"{text}. {capitalised(too_few_datasets(across))}."
        return
    others = [pair.other(best) for pair in with_method(across.rows, best) if pair.outcome_of(best) == BETTER]
    worse = first_of(map(name_of, others))
    yield f"{text}; shown to be worse: {worse or 'no other'}."


def too_few_datasets(across: Across) -> str:
    """Explains why no test over the datasets can separate the methods, and how many datasets would be enough."""
    tests = min(row.n_family for row in across.rows)
    return (
        f"over {counted(len(across.datasets), 'dataset')} no difference can be significant after Holm's correction for "
        f"{counted(tests, 'comparison')} of methods; that takes {needed_pairs(tests, across.alpha)}"
    )
