"""Writes the verdict on one or several experiments: the best method, and how certain that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from msda_bench.results.across import Across, standings
from msda_bench.results.decision import (
    BETTER,
    BETTER_BY_MORE,
    EQUIVALENT,
    EXPLORATORY,
    SAME,
    STANDINGS,
    UNDECIDED,
    WORSE,
)
from msda_bench.results.report import mean_text
from msda_bench.results.rows import against, control_of, differ, main_pairs, main_rows, shown_family, testable
from msda_bench.results.scores import at_chance
from msda_bench.results.words import counted, listed, name_of
from msda_bench.suite.plan import Experiment

_MOST = 6
"""The maximum number of names in a sentence."""
MIN_RUNS = 5
"""With fewer runs of a method at a target, no run is called an outlier."""


def verdict(experiment: Experiment, runs: pd.DataFrame, board: pd.DataFrame, pairs: pd.DataFrame) -> tuple[str, ...]:
    """The sentences on an experiment, from its selected runs and its rows of the leaderboard and the comparisons."""
    rows = main_rows(board)
    ranked = rows[rows["rank"].notna()].sort_values("rank", kind="stable")
    if ranked.empty:
        tests = runs.loc[(runs["status"] == "ok").to_numpy(), "n_test"]
        if len(tests) and (tests == 0).all():
            where = ", ".join(map(name_of, experiment.targets))
            return (f"How good a method is at {where}, and which is best, cannot be known: there are no labels.",)
        own = runs[~runs["reference"].to_numpy(dtype=bool)]
        if own.empty:
            return ("No method is ranked here: all are references.",)
        if (own["status"] == "diverged").all():
            return ("Every run of a ranked method diverged, so no method has a score.",)
        if (own["status"] == "ok").any():
            return ("No method has a result at every target yet, so none is ranked.",)
        return ("No method has a result yet.",)
    own = main_pairs(pairs)
    return (
        _best(experiment, ranked, len(set(runs.loc[~runs["reference"].to_numpy(bool), "method"]))),
        *_certainty(experiment, ranked, own),
        *_beside(experiment, ranked, own),
        *_power(experiment, own),
        *_outliers(runs),
        *_missing(runs),
    )


def _best(experiment: Experiment, ranked: pd.DataFrame, n_methods: int) -> str:
    """Names the best of the ranked methods; `n_methods` are planned, without references."""
    best = ranked[(ranked["rank"] == 1).to_numpy()]
    n = len(experiment.targets)
    where = f"on average over {n} targets" if n > 1 else f"at {name_of(experiment.targets[0])}"
    row = best.iloc[0].to_dict()
    label = experiment.measure.label
    unit = f"% {label}" if experiment.measure.percent else label
    if len(ranked) == 1:
        others = "no other method is ranked here" if n_methods == 1 else "no other method has a score to rank"
        return f"{name_of(row['method'])} has {mean_text(row)} {unit} {where}; {others}."
    verb = "has" if len(best) == 1 else "share"
    return f"{_some(best['method'])} {verb} the best mean {where}: {mean_text(row)} {unit}."


def _certainty(experiment: Experiment, ranked: pd.DataFrame, pairs: pd.DataFrame) -> Iterator[str]:
    """Tells how each method compares with the best one."""
    best = str(ranked["method"].iloc[0])
    others = _in_order(against(pairs, best), ranked)
    if others.empty:
        return
    if not testable(others).any() and not (others["outcome"] == SAME).any():
        yield f"That is not certain: {_too_few(experiment, pairs, best)}."
        return
    yield from _groups(experiment, others, "it")


def _too_few(experiment: Experiment, pairs: pd.DataFrame, method: str) -> str:
    """Explains why no test can distinguish a method from the others, and how many seeds would be enough."""
    mine = pairs[((pairs["first"] == method) | (pairs["second"] == method)).to_numpy()]
    n, control = int(mine["n_family"].min()), control_of(pairs)
    which = f"the {n:,} comparisons with {name_of(control)}" if control else f"all {n:,} pairs of methods"
    which = f"its {n:,} comparisons" if control == method else which
    among, how = (f" among {which}", " after Holm's correction") if n > 1 else ("", "")
    few = f"with {counted(int(mine['n_paired'].max()), 'seed')} no difference{among} can be significant{how}"
    return f"{few}; that takes {_needed(n, experiment.alpha)}"


def _in_order(others: pd.DataFrame, ranked: pd.DataFrame) -> pd.DataFrame:
    """Rows by method in the order of the ranks."""
    places = {name: place for place, name in enumerate(ranked["method"].astype(object))}
    return others[others["method"].isin(places)].sort_values("method", key=lambda names: names.map(places))


def _groups(experiment: Experiment, others: pd.DataFrame, than: str) -> Iterator[str]:
    """A sentence for each outcome against one method, with the differences of the methods that have it."""
    if "standing" in others and others["standing"].notna().any():
        yield from _by_standing(experiment, others, than)
        return
    sentences = {
        "Significantly better than {}: {}.": others["outcome"] == BETTER,
        "Significantly worse than {}: {}.": others["outcome"] == WORSE,
        "Equal to {} in every pair: {}.": others["outcome"] == SAME,
        "Neither better nor worse than {} could be shown: {}.": testable(others) & ~differ(others),
    }
    for sentence, which in sentences.items():
        if which.any():
            yield sentence.format(than, _with_gains(experiment, others[which]))
    few = others[~testable(others) & (others["outcome"] != SAME)]
    if len(few):
        yield f"Too few pairs for a test against {than}: {_some(few['method'])}."


def _by_standing(experiment: Experiment, others: pd.DataFrame, than: str) -> Iterator[str]:
    """A sentence for each standing against one method, where the suite has a margin."""
    margin = _size(experiment, experiment.margin or 0.0, "g")
    lead = {
        BETTER_BY_MORE: f"Better than {than} by more than {margin}",
        BETTER: f"Better than {than}, by how much is open",
        EQUIVALENT: f"Within {margin} of {than}",
        WORSE: f"Worse than {than}",
        UNDECIDED: f"Undecided against {than}",
    }
    for standing in STANDINGS:
        rows = others[others["standing"] == standing]
        if standing == UNDECIDED and len(known := rows["detectable"].dropna()):
            size = _size(experiment, known.median())
            lead[standing] += f", where a true difference of {size} would have been found with a probability of 80 %"
        if len(rows):
            yield f"{lead[standing]}: {_with_gains(experiment, rows)}."


def _size(experiment: Experiment, size: float, form: str = ".1f") -> str:
    if experiment.measure.percent:
        return f"{size:{form}} {'point' if f'{size:{form}}' == '1' else 'points'}"
    return f"{size:.2g} in {experiment.measure.label}"


def _with_gains(experiment: Experiment, rows: pd.DataFrame) -> str:
    """Names methods with their Hodges-Lehmann estimates and intervals."""
    form = "{:+.2f}" if experiment.measure.percent else "{:+.3g}"

    def text(row: Any) -> str:
        ends = "" if pd.isna(row.low) else f" [{form.format(row.low)}, {form.format(row.high)}]"
        return f"{name_of(row.method)} {form.format(row.difference)}{ends}"

    return _first([text(row) for row in rows.itertuples()])


def _beside(experiment: Experiment, ranked: pd.DataFrame, pairs: pd.DataFrame) -> Iterator[str]:
    """Tells how the methods compare with the baseline, and with the control that the suite names."""
    order = [str(name) for name in ranked["method"]]
    for name in dict.fromkeys((experiment.baseline, experiment.against)):
        if name not in order[1:]:
            continue  # `_certainty` reports the best
        others = _in_order(against(pairs, name), ranked)
        base = f"the baseline {name_of(name)}" if name == experiment.baseline else name_of(name)
        if testable(others).any():
            if not (others["outcome"] == BETTER).any():
                yield f"No method was shown to be better than {base}."
            yield from _groups(experiment, others, base)


def _power(experiment: Experiment, pairs: pd.DataFrame) -> Iterator[str]:
    """States the smallest true difference that the tests would find; the median over the comparisons of the family."""
    rows = shown_family(pairs)
    rows = rows[~rows["family"].str.startswith(EXPLORATORY)] if experiment.primary else rows
    known = rows["detectable"].dropna()
    if known.empty:
        return
    size = _size(experiment, known.median())
    n, tests = counted(int(rows["n_paired"].max()), "seed"), counted(int(rows["n_family"].max()), "comparison")
    median = " (the median of the comparisons)" if len(known) > 1 else ""
    yield (
        f"With {n} and {tests} a true difference of {size}{median} would be found with a probability of 80 % by "
        "these exact two-sided signed-rank tests with Holm's correction; the intervals have level "
        f"{100 * (1 - experiment.alpha):g} %, not corrected."
    )


def verdict_across(across: Across) -> tuple[str, ...]:
    """The sentences on several experiments: mean gains, in how many of them methods beat the baseline, mean ranks."""
    return (*_over_baseline(across), *by_rank(across))


def _over_baseline(across: Across) -> Iterator[str]:
    rows = [row for row in across.gains if not row["reference"]]
    table = standings(across).set_index("method").loc[list(dict.fromkeys(row["method"] for row in rows))]
    tested = table["n_tested"]
    n = len({row["experiment"] for row in rows if row["detectable"] is not None or row["outcome"] in {BETTER, WORSE}})
    noun = "dataset" if len(across.experiments) == len(across.datasets) else "experiment"
    base = f"the {'tuned ' if across.is_tuned else ''}baseline {name_of(across.baseline)}"
    if table.empty:
        return
    if across.margin is not None:
        yield _by_mean_gain(across, across.margin, table, noun)
        yield from _largest(across)
    yield from _without_runs(across, table, noun)
    if not tested.any():
        yield f"Too few seeds to show a difference from {base} after Holm's correction."
    else:
        everywhere, nowhere = (table["n_better"] == n).sum(), (table["n_better"] == 0).sum()
        every = {1: f"the only {noun} with enough seeds", 2: f"both {noun}s"}.get(n, f"all {n:,} {noun}s")
        yield (
            f"Of {counted(len(table), 'method')}, {_so_many(everywhere)} significantly better than {base} on {every}; "
            f"{nowhere or 'none'} could not be shown to be better on any (in each, signed-rank tests over the seeds "
            "with Holm's correction)."
        )
        for what in ("better", "worse"):
            if times := Counter({str(name): int(count) for name, count in table[f"n_{what}"].items() if count}):
                groups = [f"{_some(names)} on {count}" for count, names in by_count(times).items()]
                yield f"{what.capitalize()}: {'; '.join(groups)}."
        undecided = table.index[(table["n_better"] == 0) & (table["n_worse"] == 0)]
        if len(undecided):
            yield f"Shown neither better nor worse on any {noun}: {_some(undecided)}."
        yield from _power_across(rows, noun)
    if across.margin is None:
        yield from _largest(across)


def _without_runs(across: Across, table: pd.DataFrame, noun: str) -> Iterator[str]:
    """Names the methods of all experiments whose mean gain is over fewer of them, since runs are missing."""
    of, known = len(across.experiments), table["n_experiments"]
    few = [
        f"{name_of(name)} on {known[name]} of {of}"
        for name in known.index
        if name in across.methods and known[name] < of
    ]
    if few:
        yield f"Some mean gains are of fewer {noun}s than others: {_first(few)}."


def _by_mean_gain(across: Across, margin: float, table: pd.DataFrame, noun: str) -> str:
    """What each method is by its mean gain."""
    size = f"{margin:g} {'point' if margin == 1 else 'points'}"
    words = {BETTER_BY_MORE: f"better by more than {size}", EQUIVALENT: f"equivalent, within {size}"}
    groups = []
    for standing in STANDINGS:
        rows = table[(table["standing"] == standing).to_numpy()]
        known = rows["detectable"].dropna()
        what = words.get(standing, standing)
        if standing == UNDECIDED and len(known):
            what += f" (a true mean gain of {known.median():.1f} points would be found with a probability of 80 %)"
        if len(rows):
            groups.append(f"{_some(rows.index)} {what}")
    over = counted(len(across.experiments), noun)
    return f"Against {name_of(across.baseline)}, by the mean gain over {over}: {'; '.join(groups)}."


def _power_across(rows: list[Any], noun: str) -> Iterator[str]:
    """States the range over the experiments of the smallest true gain that their tests would find."""
    known = pd.DataFrame(rows).dropna(subset="detectable").groupby("experiment")["detectable"].median()
    if len(known):
        low, high = f"{known.min():.1f}", f"{known.max():.1f}"
        size = low if low == high else f"{low} to {high}"
        yield f"A true gain of {size} points, depending on the {noun}, would be found with a probability of 80 %."


def _so_many(number: int) -> str:
    return f"{number or 'none'} {'are' if number > 1 else 'is'}"


def by_count(times: Counter[str]) -> dict[int, list[str]]:
    """Groups names by how often they were counted, the most frequent first."""
    groups: dict[int, list[str]] = {}
    for name, count in times.most_common():
        groups.setdefault(count, []).append(name)
    return groups


def _largest(across: Across) -> Iterator[str]:
    """Names the largest mean gain of a method, and that of a reference."""
    every = standings(across).dropna(subset="mean_gain")
    known = every[(every["n_experiments"] == len(across.experiments)).to_numpy()]
    is_cut = not {*every["method"]}.intersection(across.methods) <= {*known["method"]}
    over = f" over all {len(across.experiments)}" if is_cut else ""
    best = known.sort_values(["reference", "mean_gain"], ascending=[True, False]).drop_duplicates("reference")
    gains = [
        f"{name_of(row['method'])} {row['mean_gain']:+.2f} [{row['mean_gain_low']:+.2f}, {row['mean_gain_high']:+.2f}]"
        for row in best.to_dict("records")
    ]
    if gains and not best["reference"].iloc[0]:
        reference = f" (the reference {gains[1]})" if len(gains) > 1 else ""
        yield f"The largest mean gain{over} in points of accuracy: {gains[0]}{reference}."


def by_rank(across: Across) -> Iterator[str]:
    """Names the best mean rank over the datasets, and the methods that differ significantly from the best."""
    if not across.concludes or not across.mean_ranks:
        return
    best, over = across.methods[0], counted(across.n_ranked, "dataset")
    methods = counted(len(across.methods), "method")
    yield f"{name_of(best)} has the best mean rank over {over}: {across.mean_ranks[best]:.2f} of {methods}."
    if not across.separates:
        yield f"That is not certain: {too_few_datasets(across)}."
        return
    others = against(pd.DataFrame(across.rows), best)
    undecided, worse = others[others["outcome"] != WORSE]["method"], others[others["outcome"] == WORSE]["method"]
    if len(undecided):
        yield f"Not shown to be worse: {listed(map(name_of, undecided))}."
    if len(known := others["detectable"].dropna()):
        yield (
            f"A true difference of {known.median():.1f} points (the median of the comparisons) would be found with a "
            "probability of 80 %."
        )
    if len(worse):
        yield f"Significantly worse: {listed(map(name_of, worse))}."


def too_few_datasets(across: Across) -> str:
    """Explains why no test over the datasets can separate the methods, and how many datasets would be enough."""
    tests = min(row["n_family"] for row in across.rows)
    return (
        f"over {counted(len(across.datasets), 'dataset')} no difference can be significant after Holm's correction for "
        f"{counted(tests, 'comparison')} of methods; that takes {_needed(tests, across.alpha)}"
    )


def _needed(tests: int, alpha: float) -> int:
    """The fewest pairs with which one of this many two-sided tests can be significant after Holm's correction."""
    return math.ceil(math.log2(2 * tests / alpha))


def _far(runs: pd.DataFrame) -> pd.DataFrame:
    """Outliers: runs farther from the median of their method and target than ten times the median distance.

    The median distance counts as at least that of all methods at the target, so that nearly equal runs have no
    outliers.
    """
    scored = runs[(runs["status"] == "ok").to_numpy()][["method", "target", "seed", "score"]].astype(
        {"method": object, "target": object}
    )
    place = [scored["method"], scored["target"]]
    median = scored["score"].groupby(place).transform("median")
    away = (scored["score"] - median).abs()
    usual = away.groupby(place).transform("median")
    common = usual.groupby(scored["target"]).transform("median")
    enough = scored["score"].groupby(place).transform("count") >= MIN_RUNS
    far = enough & (away > 10 * usual.where(usual > common, common)) & (away > 0)
    return scored.assign(median=median, away=away)[far].sort_values("away", ascending=False, kind="stable")


def _outliers(runs: pd.DataFrame) -> Iterator[str]:
    far = _far(runs)
    if far.empty:
        return
    shown = [
        f"{name_of(row.method)} at {name_of(row.target)}, seed {row.seed} ({row.score:.4g}, median {row.median:.4g})"
        for row in far.head(3).itertuples()
    ]
    more = f" and {len(far) - 3} more" if len(far) > 3 else ""  # noqa: PLR2004
    what, weigh = ("One run is", "weighs") if len(far) == 1 else (f"{len(far)} runs are", "weigh")
    where = f"{'; '.join(shown)}{more}"
    yield f"{what} far from the others of the same method and target and {weigh} on its mean: {where}."


def _missing(runs: pd.DataFrame) -> Iterator[str]:
    if len(lost := at_chance(runs)):
        yield f"{counted(len(lost), 'run')} diverged and {'counts' if len(lost) == 1 else 'count'} as chance does."
    counts = runs["status"].drop(lost.index).astype(object).value_counts().drop("ok", errors="ignore")
    if counts.empty:
        return
    kinds = listed(f"{count:,} {status}" for status, count in counts.items())
    few = f"{counts.sum():,} of {counted(len(runs), 'run')} have no score ({kinds})"
    yield f"{few}; tests take the seeds that both methods have."


def _some(names: Iterable[Any]) -> str:
    return _first([name_of(name) for name in names])


def _first(words: list[str]) -> str:
    return listed(words if len(words) <= _MOST else [*words[: _MOST - 1], f"{len(words) - _MOST + 1} more"])
