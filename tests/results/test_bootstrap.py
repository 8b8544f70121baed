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


def check(row, name, value, resamples, alpha=0.05):
    ends = np.quantile(resamples, [alpha / 2, 1 - alpha / 2])
    assert row[[name, f"{name}_low", f"{name}_high"]].tolist() == pytest.approx([value, *ends], abs=1e-9)


def middle(scores, axis=None):
    return scipy.stats.trim_mean(scores, 0.25, axis=axis)


@pytest.mark.parametrize(("n", "alpha"), [(5, 0.05), (6, 0.05), (9, 0.3), (23, 0.05)])
def test_intervals_are_percentiles_of_the_drawn_runs(table, n, alpha):
    draw = random.Random(n)
    runs = {target: [draw.randrange(least, least + 20) for _ in range(n)] for target, least in (("x", 20), ("y", 90))}
    board = mb.leaderboard(table({"a": runs, "b": runs}, alpha=alpha)).set_index(["method", "target"])
    for name, statistic in (("mean", np.mean), ("iqm", middle)):
        values = {target: statistic(np.array(scores) / 2) for target, scores in runs.items()}
        drawn = {target: statistic(resampled(scores, target), axis=1) for target, scores in runs.items()}
        for target in "xy":
            check(board.loc["b", target], name, values[target], drawn[target], alpha)
        # Targets count equally and are never pooled.
        check(board.loc["b", "average"], name, sum(values.values()) / 2, sum(drawn.values()) / 2, alpha)


@pytest.mark.parametrize("n", [5, 8, 40])
def test_improvement_is_mann_and_whitneys_share_of_methods_drawn_apart(table, n):
    draw = random.Random(n)
    first, second = ({target: [draw.randrange(90, 110) for _ in range(n)] for target in "xy"} for _ in range(2))
    pairs = mb.compare(table({"a": first, "b": second}))
    values, drawn = [], []
    for target in "xy":
        u = scipy.stats.mannwhitneyu(first[target], second[target], method="asymptotic").statistic
        values.append(u / n**2)
        ours, theirs = resampled(first[target], target)[:, :, None], resampled(second[target], target, 1)[:, None]
        drawn.append(((ours > theirs) + (ours == theirs) / 2).mean(axis=(1, 2)))
    for row, value, shares in zip(
        pairs.iloc[:3].iloc, [*values, sum(values) / 2], [*drawn, sum(drawn) / 2], strict=True
    ):
        check(row, "improvement", value, shares)
    assert pairs.iloc[3]["improvement":"improvement_high"].isna().all()  # across targets


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
    few = mb.compare(table({name: {"x": of_method["x"][:4]} for name, of_method in runs.items()})).iloc[0]
    assert (few["improvement"], np.isnan(few["improvement_low"])) == (0.875, True)
