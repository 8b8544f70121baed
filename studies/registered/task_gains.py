"""Gains over SRC by task, seed and method, in points, and the registered tests of each task and of the mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

import msda_bench as mb
from margins import (
    LEVEL,
    PValues,
    benjamini_hochberg,
    detectable_mean_gain,
    exact_tests,
    holm,
    margin_of,
    mean_tests,
    shift,
    verdicts,
)
from msda_bench.results.estimates import MeanGain, detectable_shift, summarize

PRIMARY = ["CORAL", "MMD", "CDAN", "MCC", "BNM", "SHOT", "DARN", "MFSAN"]
MEAN = ["mean_gain", "mean_gain_low", "mean_gain_high"]


def gains_of(chosen: pd.DataFrame, by: Sequence[str] = ("experiment", "seed")) -> Any:
    """Gains over SRC by (task, seed) and method, as means over targets; SRC's own column holds its accuracy.

    Means are over the runs that have `by` in common. A run without a score, which diverged, counts at chance.
    """
    place = ["experiment", "target", "seed"]
    runs = chosen[[*place, "method", "score"]].astype({"experiment": str, "target": str, "method": str})
    chance = runs[runs["method"] == "chance"].set_index(place)["score"]
    at_chance = pd.Series(chance.reindex(pd.MultiIndex.from_frame(runs[place])).to_numpy(), runs.index)
    scores = runs.assign(score=runs["score"].fillna(at_chance)).groupby([*by, "method"])["score"]
    means = scores.mean().unstack()
    return means.sub(means["SRC"], axis=0).assign(SRC=means["SRC"])


def overlaps_of(runs: pd.DataFrame) -> pd.Series[float]:
    """Test over training examples of the target, by task."""
    return (runs["n_test"] / runs["n_train"]).groupby(runs["experiment"].astype(str)).mean()


def tasks_of(differences: Any, overlaps: pd.Series[float]) -> Any:
    """Mean, standard error and degrees of freedom of each task, from differences by (task, seed).

    The variance of a mean over n seeds is (1 / n + overlap) s^2, since seeds share examples (Nadeau and Bengio 2003);
    an overlap of 0 is for independent seeds.
    """
    of = differences.groupby(level="experiment").agg(["mean", "var", "size"])
    errors = np.sqrt(of["var"] * (1 / of["size"] + overlaps[of.index]))
    return pd.DataFrame({"mean": of["mean"], "error": errors, "freedom": of["size"] - 1})


def tests_of(chosen: pd.DataFrame, gains: Any) -> Any:
    """The registered tests of each ranked method with SRC, by (task, method), and the sizes of its gains in points.

    Holm's correction is over the primary methods; the others are exploratory, with Benjamini and Hochberg's.
    """
    overlaps, frames = overlaps_of(chosen), {}
    for table in chosen.results.plan.experiments:
        ranked = [method.name for method in table.methods if not method.reference and method.name != "SRC"]
        families = [name for name in ranked if name in PRIMARY], [name for name in ranked if name not in PRIMARY]
        own = gains.loc[table.name]
        rows = [
            _tests_in_family(own[names], margin_of(table.name), overlaps[table.name], adjust)
            for names, adjust in zip(families, (holm, benjamini_hochberg), strict=True)
            if names
        ]
        frames[table.name] = pd.concat(rows).loc[ranked]
    return pd.concat(frames, names=["experiment", "method"])


def _tests_in_family(gains: Any, margin: float, overlap: float, adjust: Any) -> pd.DataFrame:
    values = {str(name): gains[name].dropna().to_numpy() for name in gains}
    means = {name: float(of.mean()) for name, of in values.items()}
    found = verdicts(means, {name: exact_tests(of, margin) for name, of in values.items()}, adjust)
    rows = {}
    for name, of in values.items():
        size, low_and_high = shift(of), summarize(of).allowing(overlap).interval(LEVEL)
        least = detectable_shift(len(of), LEVEL / len(values))
        rows[name] = {
            "mean": means[name],
            **dict(zip(("gain", "low", "high"), size, strict=True)),
            **dict(zip(("corrected_low", "corrected_high"), low_and_high, strict=True)),
            "detectable": np.nan if least is None else least * of.std(ddof=1),
            "n_paired": len(of),
        }
    return pd.DataFrame.from_dict(rows, orient="index").join(found)


def signed_ranks_p(gains: Any) -> pd.Series[float]:
    """The exact p of each method over tasks, after Holm's correction; a task's gain is its mean."""
    means = gains.groupby(level="experiment").mean().round(9)
    return pd.Series(holm([mb.signed_rank(means[name], "two-sided").p for name in means]), [*means])


def mean_gains_of(gains: Any, margins: Mapping[str, float]) -> pd.DataFrame:
    """The mean gains over these tasks by the plan: seeds are independent, and Holm's correction is over the methods."""
    tasks, margin = [*margins], round(float(np.mean([*margins.values()])), 2)
    rows: dict[str, dict[str, Any]] = {}
    tests: dict[str, PValues] = {}
    for name in (*PRIMARY, "JOINT"):
        of = tasks_of(gains[name].loc[tasks], pd.Series(0.0, tasks))
        mean = MeanGain.of([*zip(of["mean"], of["error"], of["freedom"] + 1, strict=True)])
        sizes = dict(zip(MEAN, (mean.mean, *mean.interval(LEVEL)), strict=True))
        tests[name] = mean_tests(*mean, margin)
        rows[name] = {**sizes, "detectable": detectable_mean_gain(mean.error, mean.freedom, LEVEL / len(PRIMARY))}
    found = verdicts({name: rows[name]["mean_gain"] for name in PRIMARY}, {name: tests[name] for name in PRIMARY})
    return pd.DataFrame.from_dict(rows, orient="index").join(found)
