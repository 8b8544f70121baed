"""Writes the verdict on one or several experiments: the best method, and how certain that is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from msda_bench.results.across import Across, standings
from msda_bench.results.rows import against, family_of, main_pairs, main_rows
from msda_bench.results.tables import mean_text
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
        return ("No method has a result yet.",)
    own = main_pairs(pairs)
    return (
        _best(experiment, ranked),
        *_certainty(experiment, ranked, own),
        *_beside(experiment, ranked, own),
        *_outliers(runs),
        *_missing(runs),
    )


def _best(experiment: Experiment, ranked: pd.DataFrame) -> str:
    best = ranked[(ranked["rank"] == 1).to_numpy()]
    n = len(experiment.targets)
    where = f"on average over {n} targets" if n > 1 else f"at {name_of(experiment.targets[0])}"
    row = best.iloc[0].to_dict()
    label = experiment.measure.label
    unit = f"% {label}" if experiment.measure.percent else label
    verb = "has" if len(best) == 1 else "share"
    return f"{_some(best['method'])} {verb} the best mean {where}: {mean_text(row)} {unit}."


def _certainty(experiment: Experiment, ranked: pd.DataFrame, pairs: pd.DataFrame) -> Iterator[str]:
    """Names the methods that differ significantly from the best one, and those that do not."""
    best = str(ranked["method"].iloc[0])
    tested = family_of(pairs, best)
    others = against(tested, best)
    answers = dict(zip(others["method"], others["significant"].astype(object), strict=True))
    named = [name for name in ranked["method"].astype(object) if name in answers]
    unknown = [name for name in named if pd.isna(answers[name])]
    if not named:
        return
    seeds = int(pairs["n_paired"].max())
    if len(unknown) == len(named):
        n, needed = len(tested), _needed(len(tested), experiment.alpha)
        which = f"all {n:,} pairs of methods" if tested is pairs else f"its {n:,} comparisons"
        among, how = (f" among {which}", " after Holm's correction") if n > 1 else ("", "")
        few = f"with {counted(seeds, 'seed')} no difference{among} can be significant{how}"
        yield f"That is not certain: {few}; that takes {needed}."
        return
    worse = [name for name in named if name not in unknown and answers[name]]
    same = [name for name in named if name not in unknown and not answers[name]]
    how = f" (signed-rank tests over {seeds} seeds, Holm's correction)"
    if same:
        yield f"No significant difference from it: {_some(same)}{how}."
    if worse:
        who = "Every other method is" if len(worse) == len(named) > 1 else f"{_some(worse)} {_is(worse)}"
        yield f"{who} significantly worse{'' if same else how}."
    if unknown:
        yield f"Too few seeds for a test against it: {_some(unknown)}."


def _beside(experiment: Experiment, ranked: pd.DataFrame, pairs: pd.DataFrame) -> Iterator[str]:
    """Names the methods that differ from the baseline, and from the control that the suite names."""
    order = [str(name) for name in ranked["method"]]
    for name in dict.fromkeys((experiment.baseline, experiment.against)):
        if name not in order or (
            name == order[0] and against(family_of(pairs, name), name)["significant"].notna().any()
        ):
            continue  # `_certainty` reports it
        base = f"the baseline {name_of(name)}" if name == experiment.baseline else name_of(name)
        yield from _differing(name, base, order, pairs, experiment.alpha)


def _differing(name: str, base: str, order: list[str], pairs: pd.DataFrame, alpha: float) -> Iterator[str]:
    found = differing(name, order, pairs, alpha)
    if found is None:
        return
    better, worse, how = found
    if better:
        yield f"Significantly better than {base}: {_some(better)}{how}."
    elif worse:
        yield f"No method is significantly better than {base}."
    else:
        yield f"No method differs significantly from {base}."
    if worse:
        yield f"Significantly worse than {base}: {_some(worse)}{'' if better else how}."


def differing(
    name: str, order: Iterable[str], pairs: pd.DataFrame, alpha: float
) -> tuple[list[str], list[str], str] | None:
    """The methods that are significantly better and worse than one method.

    If this method is the control, the tests are corrected over the comparisons with it, otherwise over all pairs.

    Args:
        name: the one method.
        order: the methods, in the order of the result.
        pairs: an experiment's rows of the comparisons by which methods are ranked (`rows.main_pairs`).
        alpha: the level of the tests.

    Returns:
        The better methods, the worse ones, and a remark on the correction if all pairs would give another answer. None
        if no test could show a difference.
    """
    rows = pairs[((pairs["first"] == name) | (pairs["second"] == name)).to_numpy()]
    p = "p_holm_control" if (pairs["control"] == name).any() else "p_holm"
    if not rows[f"attainable_{p}"].min() <= alpha:  # nan if no pair has runs
        return None
    differs, everywhere = ((rows[column] <= alpha).to_numpy(bool, na_value=False) for column in (p, "p_holm"))
    how = "" if (differs == everywhere).all() else f" (corrected over the {len(rows)} comparisons with it alone)"
    found = rows[differs]
    others = {*found["first"], *found["second"]} - {name}
    better = [one for one in order if one in others and (found["better"] == one).any()]
    return better, [one for one in order if one in others and one not in better], how


def verdict_across(found: Across) -> tuple[str, ...]:
    """The sentences on several experiments: in how many of them methods beat the baseline, then the mean ranks."""
    return (*_over_baseline(found), *by_rank(found))


def _over_baseline(found: Across) -> Iterator[str]:
    rows = [row for row in found.gains if not row["reference"]]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    n = len({row["experiment"] for row in rows if row["tested"]})
    noun = "dataset" if len(found.experiments) == len(found.datasets) else "experiment"
    base = f"the {'tuned ' if found.is_tuned else ''}baseline {name_of(found.baseline)}"
    if not methods:
        return
    if not n:
        needed = _needed(len(methods), found.alpha)
        few = f"Too few seeds to show a difference from {base} after Holm's correction"
        yield f"{few}: for {counted(len(methods), 'method')} that takes {needed}."
        return
    better, worse = (Counter(row["method"] for row in rows if row["better"] is which) for which in (True, False))
    everywhere = sum(better[name] == n for name in methods)
    nowhere = sum(not better[name] for name in methods)
    yield (
        f"Of {counted(len(methods), 'method')}, {_so_many(everywhere)} significantly better than {base} on all "
        f"{counted(n, noun)}, and {_so_many(nowhere)} on none (in each, signed-rank tests over the seeds with Holm's "
        "correction)."
    )
    for what, times in (("Better", better), ("Worse", worse)):
        if times:
            groups = [f"{_some(names)} on {count}" for count, names in by_count(times).items()]
            yield f"{what}: {'; '.join(groups)}."
    alike = [name for name in methods if not better[name] and not worse[name]]
    if alike:
        yield f"No significant difference from it on any {noun}: {_some(alike)}."
    yield from _largest(found)


def _so_many(number: int) -> str:
    return f"{number or 'none'} {'are' if number > 1 else 'is'}"


def by_count(times: Counter[str]) -> dict[int, list[str]]:
    """Groups names by how often they were counted, the most frequent first."""
    groups: dict[int, list[str]] = {}
    for name, count in times.most_common():
        groups.setdefault(count, []).append(name)
    return groups


def _largest(found: Across) -> Iterator[str]:
    """Names the largest mean gain of a method, and that of a reference."""
    known = standings(found).dropna(subset="mean_gain")
    known = known[(known["n_experiments"] == len(found.experiments)).to_numpy()]
    best = known.sort_values(["reference", "mean_gain"], ascending=[True, False]).drop_duplicates("reference")
    gains = [f"{name_of(row['method'])} {row['mean_gain']:+.2f}" for row in best.to_dict("records")]
    if gains and not best["reference"].iloc[0]:
        reference = f" (the reference {gains[1]})" if len(gains) > 1 else ""
        yield f"The largest mean gain in points of accuracy: {gains[0]}{reference}."


def by_rank(found: Across) -> Iterator[str]:
    """Names the best mean rank over the datasets, and the methods that differ significantly from the best."""
    if not found.concludes or not found.mean_ranks:
        return
    best, over = found.methods[0], counted(len(found.datasets), "dataset")
    methods = counted(len(found.methods), "method")
    yield f"{name_of(best)} has the best mean rank over {over}: {found.mean_ranks[best]:.2f} of {methods}."
    if not found.separates:
        yield f"That is not certain: {too_few_datasets(found)}."
        return
    pairs = {row["second"] if row["first"] == best else row["first"]: row for row in found.rows if best in _two(row)}
    same = [name for name, row in pairs.items() if not row["significant_holm"]]
    worse = [name for name in pairs if name not in same]
    if same:
        yield f"No significant difference from it: {listed(map(name_of, same))}."
    if worse:
        yield f"Significantly worse: {listed(map(name_of, worse))}."


def too_few_datasets(found: Across) -> str:
    """Explains why no test over the datasets can separate the methods, and how many datasets would be enough."""
    n, pairs = counted(len(found.datasets), "dataset"), counted(len(found.rows), "pair")
    return (
        f"over {n} no difference can be significant after Holm's correction for {pairs} of methods; "
        f"that takes {_needed(len(found.rows), found.alpha)}"
    )


def _two(row: Any) -> tuple[Any, Any]:
    return row["first"], row["second"]


def _needed(tests: int, alpha: float) -> int:
    """The fewest pairs with which one of this many two-sided tests can be significant after Holm's correction."""
    return math.ceil(math.log2(2 * tests / alpha))


def _far(runs: pd.DataFrame) -> pd.DataFrame:
    """Outliers: runs farther from the median of their method and target than ten times the median distance.

    The median distance counts as at least that of all methods at the target, so that nearly equal runs have no
    outliers.
    """
    found = runs[(runs["status"] == "ok").to_numpy()][["method", "target", "seed", "score"]].astype(
        {"method": object, "target": object}
    )
    place = [found["method"], found["target"]]
    median = found["score"].groupby(place).transform("median")
    away = (found["score"] - median).abs()
    usual = away.groupby(place).transform("median")
    common = usual.groupby(found["target"]).transform("median")
    enough = found["score"].groupby(place).transform("count") >= MIN_RUNS
    far = enough & (away > 10 * usual.where(usual > common, common)) & (away > 0)
    return found.assign(median=median, away=away)[far].sort_values("away", ascending=False, kind="stable")


def _outliers(runs: pd.DataFrame) -> Iterator[str]:
    found = _far(runs)
    if found.empty:
        return
    shown = [
        f"{name_of(row.method)} at {name_of(row.target)}, seed {row.seed} ({row.score:.4g}, median {row.median:.4g})"
        for row in found.head(3).itertuples()
    ]
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""  # noqa: PLR2004
    what, weigh = ("One run is", "weighs") if len(found) == 1 else (f"{len(found)} runs are", "weigh")
    where = f"{'; '.join(shown)}{more}"
    yield f"{what} far from the others of the same method and target and {weigh} on its mean: {where}."


def _missing(runs: pd.DataFrame) -> Iterator[str]:
    counts = runs["status"].astype(object).value_counts().drop("ok", errors="ignore")
    if counts.empty:
        return
    kinds = listed(f"{count:,} {status}" for status, count in counts.items())
    few = f"{counts.sum():,} of {counted(len(runs), 'run')} have no score ({kinds})"
    yield f"{few}; tests take the seeds that both methods have."


def _is(names: list[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _some(names: Iterable[Any]) -> str:
    shown = [name_of(name) for name in names]
    return listed(shown if len(shown) <= _MOST else [*shown[: _MOST - 1], f"{len(shown) - _MOST + 1} more"])
