"""Bootstrap intervals, by drawing each resample anew."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest
import scipy.stats

import msda_bench as mb

RESAMPLES = 2000


def resampled(runs: list[int], target: str, side: int = 0) -> np.ndarray:
    """The runs of each resample, in percent: (RESAMPLES, n). Published tables depend on these draws."""
    n, key = len(runs), int.from_bytes(hashlib.sha256(f"bootstrap {target}".encode()).digest()[:16], "big")
    raw = np.random.Philox(key=key, counter=[0, 0, side, n]).random_raw(n * RESAMPLES)
    drawn = (raw >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)
    return np.array(runs)[drawn.astype(int).reshape(n, RESAMPLES).T] / 2


def check(row, names, value, resamples, alpha=0.05):
    ends = np.quantile(resamples, [alpha / 2, 1 - alpha / 2])
    assert row[[*names]].tolist() == pytest.approx([value, *ends], abs=1e-9)


@pytest.mark.parametrize(("n", "alpha"), [(5, 0.05), (6, 0.05), (9, 0.3), (23, 0.05)])
def test_intervals_are_percentiles_of_the_drawn_runs(table, n, alpha):
    draw = random.Random(n)
    runs = {name: {target: [draw.randrange(90, 110) for _ in range(n)] for target in "xy"} for name in "ab"}
    made = table(runs, alpha=alpha)
    board = mb.leaderboard(made).set_index(["method", "target"])
    for name, own in runs.items():
        every = {target: resampled(scores, target) for target, scores in own.items()}
        means = {target: drawn.mean(axis=1) for target, drawn in every.items()}
        middles = {target: scipy.stats.trim_mean(drawn, 0.25, axis=1) for target, drawn in every.items()}
        for names, statistic, drawn in (
            (("mean", "mean_low", "mean_high"), np.mean, means),
            (("iqm", "iqm_low", "iqm_high"), lambda scores: scipy.stats.trim_mean(scores, 0.25), middles),
        ):
            values = {target: statistic(np.array(scores) / 2) for target, scores in own.items()}
            for target in "xy":
                check(board.loc[name, target], names, values[target], drawn[target], alpha)
            # targets count equally and are never pooled
            check(board.loc[name, "average"], names, sum(values.values()) / 2, sum(drawn.values()) / 2, alpha)


@pytest.mark.parametrize("n", [5, 8, 40])
def test_improvement_is_mann_and_whitneys_share_of_methods_drawn_apart(table, n):
    draw = random.Random(n)
    first, second = ({target: [draw.randrange(90, 110) for _ in range(n)] for target in "xy"} for _ in range(2))
    pairs = mb.compare(table({"a": first, "b": second})).iloc[:3]
    values, drawn = [], []
    for target in "xy":
        u = scipy.stats.mannwhitneyu(first[target], second[target], method="asymptotic").statistic
        values.append(u / n**2)
        ours, theirs = resampled(first[target], target)[:, :, None], resampled(second[target], target, 1)[:, None]
        drawn.append(((ours > theirs) + (ours == theirs) / 2).mean(axis=(1, 2)))
    names = ("improvement", "improvement_low", "improvement_high")
    for row, value, shares in zip(pairs.iloc, [*values, sum(values) / 2], [*drawn, sum(drawn) / 2], strict=True):
        check(row, names, value, shares)
    assert mb.compare(table({"a": first, "b": second})).iloc[3][[*names]].isna().all()  # across targets


def test_intervals_need_five_runs_at_every_target(table):
    runs = {"a": {"x": [1, 2, 3, 4, 5], "y": [1, 2, 3, 4, None]}, "b": {"x": [1] * 5, "y": [None] * 5}}
    board = mb.leaderboard(table(runs)).set_index(["method", "target"])
    ends = ["mean_low", "mean_high", "iqm_low", "iqm_high"]
    assert board[ends].notna().all(axis=1).loc["a"].tolist() == [True, False, False]
    assert board.loc[("a", "y"), ["mean", "iqm"]].tolist() == [1.25, 1.25]
    assert board.loc[("b", "y"), ["mean", "iqm", *ends]].isna().all()
    pairs = mb.compare(table(runs)).set_index("target")
    assert pairs.loc["x", "improvement"] == 0.9  # one of five ties
    assert pairs.loc["y", "improvement":"improvement_high"].isna().all()
    few = mb.compare(table({name: {"x": own["x"][:4]} for name, own in runs.items()})).iloc[0]
    assert few["improvement"] == 0.875
    assert np.isnan(few["improvement_low"])
