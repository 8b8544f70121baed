from __future__ import annotations

import hashlib
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.stats import bootstrap
from msda_bench.stats.bootstrap import (
    MIN_RUNS,
    RESAMPLES,
    Draws,
    Interval,
    bootstrap_mean,
    interquartile_mean,
    percentiles,
    running_totals,
)

DRAWS = Draws()
scores = st.lists(st.integers(0, 50).map(lambda number: Fraction(number, 7)), min_size=MIN_RUNS, max_size=12)


def fractions(*numbers: int) -> list[Fraction]:
    return [Fraction(number) for number in numbers]


def test_every_resample_draws_as_many_runs() -> None:
    counts = DRAWS.counts("books", 7)
    assert counts.shape == (7, RESAMPLES)
    assert (counts.sum(axis=0) == 7).all()
    assert counts.min() == 0
    # each run is drawn n * RESAMPLES / n times on average; six standard deviations to either side
    assert np.abs(counts.sum(axis=1) - RESAMPLES).max() < 6 * (RESAMPLES * 6 / 7) ** 0.5


def test_the_draws_are_pinned() -> None:
    """The bytes of published tables hang on them: a change of these numbers changes tables."""
    assert DRAWS.counts("books", 5)[:, :3].tolist() == [[1, 1, 3], [1, 2, 0], [3, 1, 0], [0, 1, 1], [0, 0, 1]]


def test_many_runs_are_drawn_as_few_are_though_in_parts() -> None:
    n = 1100
    key = int.from_bytes(hashlib.sha256(b"bootstrap dvd").digest()[:16], "big")
    raw = np.random.Philox(key=key, counter=[0, 0, 1, n]).random_raw(n * RESAMPLES).reshape(n, RESAMPLES)
    counts = Draws().counts("dvd", n, side=1)
    for resample in range(0, RESAMPLES, 199):
        drawn = [(int(number) >> 32) * n >> 32 for number in raw[:, resample]]
        assert counts[:, resample].tolist() == np.bincount(drawn, minlength=n).tolist()


def test_targets_sizes_and_sides_are_drawn_apart() -> None:
    drawn = [DRAWS.counts("books", 6), DRAWS.counts("dvd", 6), DRAWS.counts("books", 6, side=1)]
    for one, other in [(0, 1), (0, 2), (1, 2)]:
        correlation = np.corrcoef(drawn[one].ravel(), drawn[other].ravel())[0, 1]
        assert abs(correlation) < 5 / (6 * RESAMPLES) ** 0.5
    assert Draws().counts("books", 6).tolist() == drawn[0].tolist()


def test_the_interval_is_of_all_resamples_of_five_runs() -> None:
    runs = fractions(1, 2, 3, 4, 100)
    means = [np.mean(drawn) for drawn in product([1, 2, 3, 4, 100], repeat=5)]
    found = bootstrap_mean({"books": runs}, DRAWS, alpha=0.2)
    low, high = np.quantile(means, [0.08, 0.12, 0.88, 0.92])[[0, 2]], np.quantile(means, [0.12, 0.92])
    assert low[0] <= found.low <= high[0]
    assert low[1] <= found.high <= high[1]


def test_agrees_with_the_spread_of_a_stratified_mean() -> None:
    draw = np.random.default_rng(0)
    runs = {name: draw.normal(size=40) * scale for name, scale in (("x", 1), ("y", 5), ("z", 2))}
    found = bootstrap_mean({name: list(map(Fraction, values)) for name, values in runs.items()}, DRAWS, alpha=0.05)
    error = np.sqrt(sum(np.var(values) / len(values) for values in runs.values())) / 3
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.08)
    assert (found.high + found.low) / 2 == pytest.approx(np.mean(list(map(np.mean, runs.values()))), abs=error / 5)


@given(st.dictionaries(st.sampled_from("xyz"), scores, min_size=1))
def test_intervals_stay_within_the_scores(runs: dict[str, list[Fraction]]) -> None:
    alike = {target: [Fraction(3)] * len(values) for target, values in runs.items()}
    found = bootstrap_mean(alike, DRAWS, alpha=0.05)
    assert (found.low, found.high) == pytest.approx((3, 3), rel=1e-12)
    lowest, highest = (float(pick(map(pick, runs.values()))) for pick in (min, max))
    around = bootstrap_mean(runs, DRAWS, alpha=0.05)
    assert lowest - 1e-9 <= around.low <= around.high <= highest + 1e-9


@given(st.dictionaries(st.sampled_from("xyz"), scores, min_size=1))
def test_iqm_is_scipys_trimmed_mean_of_all_runs(runs: dict[str, list[Fraction]]) -> None:
    found = interquartile_mean(runs, DRAWS, alpha=0.05)
    flat = [float(score) for values in runs.values() for score in values]
    assert found.value == pytest.approx(scipy.stats.trim_mean(flat, 0.25))
    assert found.interval.low <= found.interval.high


def test_resampled_iqm_is_scipys_trimmed_mean_of_the_drawn_runs() -> None:
    draw = random.Random(0)
    runs = {target: [Fraction(draw.randrange(40)) for _ in range(n)] for target, n in (("x", 5), ("y", 9))}
    means = []
    for resample in range(RESAMPLES):
        drawn = [
            float(score)
            for target, values in runs.items()
            for score, count in zip(values, DRAWS.counts(target, len(values))[:, resample], strict=True)
            for _ in range(count)
        ]
        means.append(scipy.stats.trim_mean(drawn, 0.25))
    found = interquartile_mean(runs, DRAWS, alpha=0.1)
    expected = percentiles(np.array(means), 0.1)
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high))


def test_resampled_iqm_of_many_runs_is_the_same_though_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    runs = {target: [Fraction(draw.randrange(40)) for _ in range(9)] for target in "xy"}
    whole = interquartile_mean(runs, DRAWS, alpha=0.1)
    monkeypatch.setattr(bootstrap, "_MOST_CUT", 18 * 300)
    assert interquartile_mean(runs, DRAWS, alpha=0.1) == whole


@pytest.mark.parametrize("runs", [{}, {"x": []}, {"x": fractions(1, 2, 3, 4, 5), "y": []}])
def test_without_runs_there_is_nothing(runs: dict[str, list[Fraction]]) -> None:
    assert bootstrap_mean(runs, DRAWS, 0.05) is None
    assert interquartile_mean(runs, DRAWS, 0.05) is None


def test_few_runs_have_no_interval() -> None:
    runs = {"x": fractions(1, 2, 3, 4, 5), "y": fractions(1, 2, 3, 4)}
    assert bootstrap_mean(runs, DRAWS, 0.05) is None
    assert interquartile_mean(runs, DRAWS, 0.05).interval is None
    assert isinstance(bootstrap_mean({"x": runs["x"]}, DRAWS, 0.05), Interval)


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=30), st.floats(0.001, 0.999))
def test_percentiles_are_numpys_quantiles(values: list[float], alpha: float) -> None:
    found = percentiles(np.array(values), alpha)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(values, [alpha / 2, 1 - alpha / 2])), abs=1e-12)


def test_running_totals() -> None:
    assert running_totals([np.array(row, np.int32) for row in ([1, 0], [2, 5])]).tolist() == [[0, 0], [1, 0], [3, 5]]
