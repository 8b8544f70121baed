"""What an experiment shows, in a few sentences: the best method, how certain that is, and what to beware of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from msda_bench.results.plots.pairs import against, main_pairs
from msda_bench.results.plots.parts import name_of
from msda_bench.results.plots.scores import main_rows, mean_text
from msda_bench.results.words import counted, listed
from msda_bench.suite.plan import Experiment

_MOST = 6
"""Names in a sentence."""
MIN_RUNS = 5
"""Runs of a method at a target below which none of them is called far from the others."""


def verdict(experiment: Experiment, runs: pd.DataFrame, board: pd.DataFrame, pairs: pd.DataFrame) -> tuple[str, ...]:
    """The sentences of an experiment, from its selected runs and its rows of the leaderboard and the comparisons."""
    rows = main_rows(board)
    ranked = rows[rows["rank"].notna()].sort_values("rank", kind="stable")
    if ranked.empty:
        return ("No method has a result yet.",)
    own = main_pairs(pairs)
    return (
        _best(experiment, ranked),
        *_certainty(ranked, own),
        *_over_baseline(experiment, ranked, own),
        *_strays(runs),
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


def _certainty(ranked: pd.DataFrame, pairs: pd.DataFrame) -> Iterator[str]:
    """Which methods a test distinguishes from the best one."""
    others = against(pairs, str(ranked["method"].iloc[0]))
    if others.empty:
        return
    tested = others[others["significant"].notna()]
    seeds = int(pairs["n_paired"].max())
    if tested.empty:
        yield (
            f"That is not certain: with {counted(seeds, 'seed')} no difference can be significant after Holm's "
            f"correction for {counted(len(pairs), 'pair')} of methods."
        )
        return
    order = [name for name in ranked["method"].astype(object) if name in set(tested["method"])]
    lost = tested["significant"].astype(bool).to_numpy()
    worse = set(tested.loc[lost, "method"])
    same = [name for name in order if name not in worse]
    beaten = [name for name in order if name in worse]
    if same:
        how = f"signed-rank tests over {seeds} seeds, Holm's correction"
        yield f"No significant difference from it: {_some(same)} ({how})."
    if beaten:
        who = f"{_some(beaten)} {'is' if len(beaten) == 1 else 'are'}" if same else "Every other method is"
        yield f"{who} significantly worse."


def _over_baseline(experiment: Experiment, ranked: pd.DataFrame, pairs: pd.DataFrame) -> Iterator[str]:
    """Which methods beat the baseline, in the family of comparisons with it."""
    name = experiment.baseline
    if name is None or name not in set(ranked["method"]):
        return
    rows = pairs[(pairs["first"].astype(object) == name) | (pairs["second"].astype(object) == name)]
    p = "p_holm_control" if (pairs["control"].astype(object) == name).any() else "p_holm"
    attainable = rows[f"attainable_{p}"]
    if rows.empty or attainable.isna().all() or attainable.min() > experiment.alpha:
        return
    found = rows[(rows[p] <= experiment.alpha).fillna(value=False).to_numpy(dtype=bool)]
    better = [str(one) for one in found["better"] if one != name]
    lost = found[(found["better"] == name).to_numpy()]
    below = lost["first"].astype(object).where(lost["first"].astype(object) != name, lost["second"].astype(object))
    base = name_of(name)
    if better:
        yield f"Significantly better than the baseline {base}: {_some(better)}."
    else:
        yield f"No method is significantly better than the baseline {base}."
    if len(below):
        yield f"Significantly worse than the baseline {base}: {_some(below)}."


def strays(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs far from the others of their method and target: beyond five times the median distance to the median.

    And by more than that of all methods at the target, so that near-equal runs have no strays.
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


def _strays(runs: pd.DataFrame) -> Iterator[str]:
    found = strays(runs)
    if found.empty:
        return
    shown = [
        f"{name_of(row.method)} at {name_of(row.target)}, seed {row.seed} ({row.score:.4g}, median {row.median:.4g})"
        for row in found.head(3).itertuples()
    ]
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""  # noqa: PLR2004
    what = "One run is" if len(found) == 1 else f"{len(found)} runs are"
    yield f"{what} far from the others of the same method and target and weigh on its mean: {'; '.join(shown)}{more}."


def _missing(runs: pd.DataFrame) -> Iterator[str]:
    counts = runs["status"].astype(object).value_counts().drop("ok", errors="ignore")
    if counts.empty:
        return
    kinds = listed(f"{count:,} {status}" for status, count in counts.items())
    few = f"{counts.sum():,} of {counted(len(runs), 'run')} have no score ({kinds})"
    yield f"{few}; tests take the seeds that both methods have."


def _some(names: Iterable[Any]) -> str:
    shown = [name_of(name) for name in names]
    return listed(shown if len(shown) <= _MOST else [*shown[: _MOST - 1], f"{len(shown) - _MOST + 1} more"])
