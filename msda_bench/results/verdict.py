"""Writes the verdict on one or several experiments: does a method gain over the baseline, how much, is there headroom.

Sizes are mean differences with their intervals, as in the tables; the exact tests decide whether a method is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import pandas as pd

from msda_bench.results.across import Across, standings
from msda_bench.results.chance import BesideChance, chance_sentences
from msda_bench.results.decision import (
    BETTER,
    SAME,
    TOO_FEW,
    TOO_SMALL,
    UNTESTED,
    WORSE,
    PairedComparison,
    pairs_of_mean,
    with_method,
)
from msda_bench.results.leaderboard import Row, by_rank, rows_of_mean
from msda_bench.results.report import mean_text
from msda_bench.results.scores import ScoreTable, at_chance, learns_alone, tells_headroom
from msda_bench.results.words import counted, first_of, listed, name_of
from msda_bench.suite.plan import Experiment

UNDECIDED = "undecided"
_KINDS = (BETTER, SAME, WORSE, UNDECIDED, TOO_FEW)
_SMALL = "the tests have too few rows to show a difference"
_UNTESTED = "too few seeds for a test"
_MOST_GAINING = 6
"""Up to this many methods that gain on some datasets are all named; of more, the `_LARGEST` gains."""
_LARGEST = 3


class Difference(NamedTuple):
    """A method's mean difference from another one, with its interval; `of` tells in how many experiments it has one."""

    method: str
    size: float
    low: float
    high: float
    of: str = ""


Groups: TypeAlias = dict[str, list[Difference]]
"""The differences of methods by what these are, the best first, and in each the largest gain."""


class _Unit(NamedTuple):
    """How sentences show differences: the `form` of numbers, and the `label` of their unit."""

    form: str
    label: str

    @classmethod
    def of(cls, experiment: Experiment) -> _Unit:
        measure = experiment.measure
        if measure.percent:
            return cls("{:+.2f}", "points")
        return cls("{:+.3g}", f"in {measure.label}")

    def size(self, size: float) -> str:
        if self.label == "points":
            return f"{size:.1f} points"
        return f"{size:.2g} {self.label}"

    def gains(self, differences: Iterable[Difference]) -> str:
        """Names methods with their mean differences and intervals."""
        return first_of(map(self.gain, differences))

    def gain(self, difference: Difference) -> str:
        """Names a method with its mean difference and interval."""
        text = f"{name_of(difference.method)} {self.form.format(difference.size)}"
        if not math.isnan(difference.low):
            text += f" [{self.form.format(difference.low)}, {self.form.format(difference.high)}]"
        return f"{text}{difference.of}"


def verdict(
    table: ScoreTable,
    runs: pd.DataFrame,
    rows: Sequence[Row],
    pairs: Sequence[PairedComparison],
    chance: BesideChance,
) -> tuple[str, ...]:
    """The sentences on an experiment, from its selected runs, its rows of the leaderboard, and its comparisons."""
    experiment = table.experiment
    main = rows_of_mean(table, rows)
    pairs = pairs_of_mean(pairs)
    ranked = by_rank(main)
    if not ranked:
        return (_unranked(experiment, runs),)
    unit = _Unit.of(experiment)
    baseline = experiment.baseline
    groups = groups_of(pairs, baseline)
    if groups:
        why = _too_few(experiment, pairs, str(baseline)) if groups.keys() == {TOO_FEW} else ""
        sentences = [_answer(unit, name_of(baseline), groups, why)]
        if why == _SMALL:
            return (*sentences, *_missing(runs))
        sentences += _headroom(table, unit, main, runs)
        sentences += _other_groups(unit, name_of(baseline), groups)
    else:
        baseline = str(ranked[0]["method"])
        sentences = [_best(experiment, unit, ranked, pairs)]
    sentences += chance_sentences(experiment, rows, chance)
    sentences += _power(unit, with_method(pairs, str(baseline)))
    sentences += _missing(runs)
    return tuple(sentences)


def how_to_read(alpha: float) -> str:
    """What the intervals of a verdict are, and why they may differ from the tests."""
    return (
        "Exact signed-rank tests over the seeds, corrected for multiple comparisons, decide what is shown of these "
        f"examples. Differences are means over the seeds; their {100 * (1 - alpha):g} % intervals allow for the "
        "examples that seeds share, so they speak of other examples of these domains and are wider."
    )


def conclusion(experiment: Experiment, pairs: Sequence[PairedComparison]) -> str:
    """A line on an experiment: `fonts, against SRC: DARN better (+3.5); MDAN worse (-2.0); 3 not shown to differ`."""
    where = name_of(experiment.name)
    groups = groups_of(pairs_of_mean(pairs), experiment.baseline)
    if not groups:
        return f"{where}: no method is compared with a baseline"
    counted_alone = {UNDECIDED: "not shown to differ", SAME: "equal", TOO_FEW: "not tested"}
    form = "{} ({:+.1f})" if experiment.measure.percent else "{} ({:+.2g})"
    parts = []
    for kind, found in groups.items():
        if kind in counted_alone:
            parts.append(f"{len(found)} {counted_alone[kind]}")
        else:
            gains = [form.format(name_of(difference.method), difference.size) for difference in found]
            parts.append(f"{first_of(gains)} {kind}")
    return f"{where}, against {name_of(experiment.baseline)}: {'; '.join(parts)}"


def groups_of(pairs: Iterable[PairedComparison], method: str | None) -> Groups:
    """The other methods by their outcome against this one."""
    by_kind: Groups = {kind: [] for kind in _KINDS}
    for pair in with_method(pairs, method):
        name = pair.other(str(method))
        difference = Difference(name, *pair.difference_of(name))
        if not math.isnan(difference.size):
            by_kind[_kind_of(pair, name)].append(difference)
    groups = {}
    for kind, found in by_kind.items():
        if found:
            groups[kind] = sorted(found, key=lambda difference: difference.size, reverse=True)
    return groups


def _kind_of(pair: PairedComparison, method: str) -> str:
    """What one of two methods is, beside the other."""
    if pair.reason in UNTESTED:
        return TOO_FEW
    outcome = pair.outcome_of(method)
    return outcome if outcome in _KINDS else UNDECIDED


def _unranked(experiment: Experiment, runs: pd.DataFrame) -> str:
    """Why no method of an experiment is ranked."""
    tests = runs.loc[(runs["status"] == "ok").to_numpy(), "n_test"]
    if len(tests) and (tests == 0).all():
        where = ", ".join(map(name_of, experiment.targets))
        return f"How good a method is at {where}, and which is best, cannot be known: there are no labels."
    own = runs[~runs["reference"].to_numpy(dtype=bool)]
    if own.empty:
        return "No method is ranked here: all are references."
    if (own["status"] == "diverged").all():
        return "Every run of a ranked method diverged, so no method has a score."
    if (own["status"] == "ok").any():
        return "No method has a result at every target yet."
    return "No method has a result yet."


def _best(experiment: Experiment, unit: _Unit, ranked: Sequence[Row], pairs: Sequence[PairedComparison]) -> str:
    """Names the best mean, where nothing can be compared with a baseline, and the methods that are worse."""
    best = [name_of(row["method"]) for row in ranked if row["rank"] == 1]
    verb = "has" if len(best) == 1 else "share"
    n = len(experiment.targets)
    where = f"on average over {n} targets" if n > 1 else f"at {name_of(experiment.targets[0])}"
    measure = experiment.measure
    metric = f"% {measure.label}" if measure.percent else measure.label
    text = f"{first_of(best)} {verb} the best mean {where}: {mean_text(ranked[0])} {metric}"
    if len(ranked) == 1:
        return f"{text}; no other method is ranked."
    method = str(ranked[0]["method"])
    groups = groups_of(pairs, method)
    if groups.keys() == {TOO_FEW}:
        return f"{text}. That is not certain: {_too_few(experiment, pairs, method)}."
    worse = unit.gains(groups[WORSE]) if WORSE in groups else "no other"
    return f"{text}. Shown to be worse: {worse}."


def _answer(unit: _Unit, base: str, groups: Groups, why: str) -> str:
    """Whether methods gain over the baseline, which, and how much; `why` tells why nothing can be shown."""
    n = sum(len(rows) for rows in groups.values())
    if BETTER in groups:
        count = len(groups[BETTER])
        return f"{_some_gain(count, n, base)}: {unit.gains(groups[BETTER])} {unit.label}."
    if why:
        return f"Whether a method gains over {base} is open: {why}; {_largest(unit, groups)}."
    return f"{_none_gains(n, base)}; {_largest(unit, groups)}."


def _some_gain(count: int, n: int, base: str) -> str:
    verb = "gains" if count == 1 else "gain"
    return f"{count} of {counted(n, 'method')} {verb} over {base}"


def _none_gains(n: int, base: str) -> str:
    who = f"None of {n} methods" if n > 1 else "No method"
    return f"{who} was shown to gain over {base}"


def _largest(unit: _Unit, groups: Groups) -> str:
    largest = max((found[0] for found in groups.values()), key=lambda difference: difference.size)
    return f"the largest difference is {unit.gain(largest)} {unit.label}"


def _other_groups(unit: _Unit, base: str, groups: Groups) -> Iterator[str]:
    """A sentence on the methods of each outcome other than `better`."""
    leads = {
        SAME: f"Equal to {base} in every pair",
        WORSE: f"Worse than {base}",
        UNDECIDED: f"Not shown to differ from {base}",
        TOO_FEW: f"Not tested against {base}, too few seeds",
    }
    for kind, rows in groups.items():
        if not kind.startswith(BETTER):
            yield f"{leads.get(kind, _upper(kind))}: {unit.gains(rows)}."


def _headroom(table: ScoreTable, unit: _Unit, rows: Sequence[Row], runs: pd.DataFrame) -> Iterator[str]:
    """How much labels of the target gain, by the reference that tells most: one that learns from the sources, too."""
    labelled = {row["method"]: row for row in rows if row["method"] in table.labelled and not math.isnan(row["gain"])}
    recipes = {name: str(row["recipe"]) for name, row in labelled.items()}
    gains = {name: row["gain"] for name, row in labelled.items()}
    method = tells_headroom(table.experiment.headroom, recipes, gains)
    if method is None:
        return
    row = labelled[method]
    alone = _learned_from(runs, method) if learns_alone(recipes[method]) else ""
    difference = Difference(method, row["gain"], row["gain_low"], row["gain_high"])
    yield _with_labels(unit, difference, is_shown=row["headroom"], alone=alone)


def _learned_from(runs: pd.DataFrame, method: str) -> str:
    """How many rows a reference learns from that sees the target alone."""
    is_own = (runs["method"] == method) & (runs["status"] == "ok")
    sizes = runs.loc[is_own.to_numpy(dtype=bool), "n_train"].dropna()
    if sizes.empty:
        return "learns from the target alone"
    low = int(sizes.min())
    high = int(sizes.max())
    size = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"learns from {size} rows of the target alone"


def _with_labels(unit: _Unit, difference: Difference, *, is_shown: bool, alone: str = "") -> str:
    """What a reference says of headroom; `alone` tells how little it learns from, if it does not see the sources."""
    gain = f"{unit.gain(difference)} {unit.label}"
    if is_shown:
        return f"There is headroom: with labels of the target, {gain}."
    if alone:
        return f"Headroom is not shown: {gain}; {name_of(difference.method)} {alone}, so a JOINT would tell more."
    if difference.low < difference.high <= 0:
        return f"Labels of the target would not help: {gain}."
    return f"Headroom is not shown: with labels of the target, {gain}."


def _too_few(experiment: Experiment, pairs: Sequence[PairedComparison], method: str) -> str:
    """Why no comparison with a method can be significant."""
    mine = with_method(pairs, method)
    if all(pair.reason == TOO_SMALL for pair in mine):
        return _SMALL
    seeds = counted(max(pair.n_paired for pair in mine), "seed")
    n = min(pair.n_family for pair in mine)
    among = f" among {n} comparisons" if n > 1 else ""
    return f"with {seeds} no difference{among} can be significant, which takes {_needed(n, experiment.alpha)}"


def _needed(tests: int, alpha: float) -> int:
    """The fewest pairs with which one of this many two-sided tests can be significant after Holm's correction."""
    return math.ceil(math.log2(2 * tests / alpha))


def _power(unit: _Unit, pairs: Sequence[PairedComparison]) -> Iterator[str]:
    """States the smallest true difference that the tests would find; the median over the comparisons with a method."""
    detectable = [pair.detectable for pair in pairs if pair.detectable is not None]
    if not detectable:
        return
    seeds = counted(max(pair.n_paired for pair in pairs), "seed")
    size = unit.size(median(detectable))
    if len(detectable) > 1:
        size += " (median)"
    yield f"With {seeds} the tests have 80 % power for a true difference of {size}."


def _missing(runs: pd.DataFrame) -> Iterator[str]:
    """Counts the runs that diverged, and those without a score."""
    diverged = at_chance(runs)
    if len(diverged):
        verb = "counts" if len(diverged) == 1 else "count"
        yield f"{counted(len(diverged), 'run')} diverged and {verb} as chance does."
    statuses = runs["status"].drop(diverged.index).astype(object)
    counts = statuses.value_counts().drop("ok", errors="ignore")
    if len(counts):
        kinds = listed(f"{count:,} {status}" for status, count in counts.items())
        without = f"{counts.sum():,} of {counted(len(runs), 'run')} have no score ({kinds})"
        yield f"{without}; tests take the seeds that both methods have."


def verdict_across(across: Across) -> tuple[str, ...]:
    """The sentences on several experiments: gains over the baseline, headroom, power, mean ranks."""
    return (*_over_baseline(across), *_by_rank(across))


def _over_baseline(across: Across) -> Iterator[str]:
    unit = _Unit("{:+.2f}", "points in the mean")
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
    yield _answer_across(across, unit, base, groups) if is_tested else _answer(unit, base, groups, _UNTESTED)
    for difference in headroom:
        yield _with_labels(unit, difference, is_shown=difference.low > 0)
    if is_tested:
        yield from _other_groups(unit, base, groups)
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


def _answer_across(across: Across, unit: _Unit, base: str, groups: Groups) -> str:
    """Whether methods gain over the baseline in some experiments, which, and how much."""
    n_experiments = len(across.experiments)
    experiments = counted(n_experiments, "dataset" if n_experiments == len(across.datasets) else "experiment")
    n = sum(len(rows) for rows in groups.values())
    gaining = {kind: rows for kind, rows in groups.items() if kind.startswith(BETTER)}
    if not gaining:
        return f"{_none_gains(n, base)} on any of {experiments}; {_largest(unit, groups)}."
    count = sum(len(rows) for rows in gaining.values())
    text = f"{_some_gain(count, n, base)} on some of {experiments}"
    if count > _MOST_GAINING:
        return f"{text}. {_largest_gains(unit, gaining)}."
    gains = [f"{kind}: {unit.gains(rows)}" for kind, rows in gaining.items()]
    return f"{text}, {'; '.join(gains)} {unit.label}."


def _largest_gains(unit: _Unit, groups: Groups) -> str:
    """The largest gains, each with what its method is, and the number of the others."""
    every = [(difference, kind) for kind, found in groups.items() for difference in found]
    every.sort(key=lambda pair: pair[0].size, reverse=True)
    largest = [f"{unit.gain(difference)}, {kind}" for difference, kind in every[:_LARGEST]]
    others = len(every) - _LARGEST
    return f"The largest mean gains, in points: {'; '.join(largest)}. The mean gains of the other {others} are smaller"


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
        yield f"{text}. {_upper(too_few_datasets(across))}."
        return
    others = [pair.other(best) for pair in with_method(across.rows, best) if pair.outcome_of(best) == BETTER]
    worse = first_of(map(name_of, others))
    yield f"{text}; shown to be worse: {worse or 'no other'}."


def too_few_datasets(across: Across) -> str:
    """Explains why no test over the datasets can separate the methods, and how many datasets would be enough."""
    tests = min(row.n_family for row in across.rows)
    return (
        f"over {counted(len(across.datasets), 'dataset')} no difference can be significant after Holm's correction for "
        f"{counted(tests, 'comparison')} of methods; that takes {_needed(tests, across.alpha)}"
    )


def _upper(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
