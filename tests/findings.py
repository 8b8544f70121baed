"""The leaderboard's runs as its page of findings counts them, and what holds of prose."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

SINGLE = ("ensemble", "best-single")
RUN = ["experiment", "target", "method", "seed"]


def holds(text: str, *phrases: str) -> None:
    """Fails unless the prose has each phrase, and no number beside them."""
    prose = re.sub(r"^(\|.*|    .*|!\[.*)$", "", text, flags=re.MULTILINE)
    left = " ".join(prose.split())
    for phrase in sorted(phrases, key=len, reverse=True):
        assert phrase in left, phrase
        left = left.replace(phrase, "")
    assert not re.findall(r".{0,40}(?<![A-Za-z])\d.{0,20}", re.sub(r"\]\([^)]*\)|`[^`]*`", "", left)), "not held"


def interval(points: pd.Series, level: float = 0.95) -> tuple[float, float, float]:
    """The mean over seeds with Student's interval."""
    low, high = stats.t.interval(level, len(points) - 1, points.mean(), stats.sem(points))
    return points.mean(), low, high


def signed(numbers: tuple[float, float, float]) -> str:
    return "{:+.1f} [{:+.1f}, {:+.1f}]".format(*numbers)


def plain(numbers: tuple[float, float, float]) -> str:
    """The size of a difference, as a loss or a gain that the sentence names."""
    mean, *ends = numbers
    low, high = sorted(map(abs, ends)) if mean < 0 and max(ends) < 0 else ends
    return f"{abs(mean):.1f} [{low:.1f}, {high:.1f}]"


def pooled(gains: pd.Series) -> tuple[float, float, float, float]:
    """The mean over experiments of gains by (experiment, seed), Welch's interval, and the p-value of no gain."""
    by_experiment = gains.groupby("experiment")
    errors, n = by_experiment.sem() ** 2, by_experiment.size()
    df, mean = errors.sum() ** 2 / (errors**2 / (n - 1)).sum(), by_experiment.mean().mean()
    scale = np.sqrt(errors.sum()) / len(n)
    return (mean, *stats.t.interval(0.95, df, mean, scale), 2 * stats.t.sf(abs(mean) / scale, df))


def chosen(runs: pd.DataFrame, by: str = "validator:source_accuracy") -> pd.DataFrame:
    """The runs that a criterion selects, the first of equals; references by the target's labels."""
    merit = runs[by].where(~runs["reference"].astype(bool), runs["score"])
    return runs.loc[merit.groupby([runs[name] for name in RUN]).idxmax()]


def over_targets(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean scores over targets, by (experiment, seed) and method."""
    return runs.groupby(["experiment", "seed", "method"])["score"].mean().unstack()


@dataclass(frozen=True)
class Recorded:
    runs: pd.DataFrame
    standings: pd.DataFrame
    oracle: pd.DataFrame
    selected: pd.DataFrame
    scores: pd.DataFrame

    @property
    def ranked(self) -> pd.DataFrame:
        return self.standings[~self.standings["reference"].astype(bool)].drop("SRC")

    @property
    def adapting(self) -> pd.DataFrame:
        return self.ranked.drop(list(SINGLE))

    def gains(self, method: str, over: str = "SRC") -> pd.Series:
        """By (experiment, seed), of the six experiments that count."""
        return (self.scores[method] - self.scores[over]).drop("fonts-poisoned", errors="ignore")

    def gain(self, method: str, dataset: str, over: str = "SRC") -> tuple[float, float, float]:
        return interval(self.gains(method, over).loc[f"{dataset}-small"])

    def mean_gain(self, method: str) -> tuple[float, float, float]:
        row = self.standings.loc[method]
        return row["mean_gain"], row["mean_gain_low"], row["mean_gain_high"]
