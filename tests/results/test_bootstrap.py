from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.results.bootstrap import (
    MIN_RUNS,
    RESAMPLES,
    Draws,
    Resampled,
    Rival,
    interquartile_mean,
    over_targets,
    target_mean,
)

DRAWS = Draws()
scores = st.lists(st.integers(0, 50).map(lambda number: number / 7), min_size=1, max_size=12)


def share(first: Sequence[int], second: Sequence[int], target: str = "x") -> Resampled | None:
    return Rival(second, target, DRAWS).wins(first)


def test_every_resample_draws_as_many_runs() -> None:
    counts = DRAWS.counts("books", 7)
    assert counts.shape == (7, RESAMPLES)
    assert (counts.sum(axis=0) == 7).all()
    assert counts.min() == 0
    # each run is drawn n * RESAMPLES / n times on average; six standard deviations to either side
    assert np.abs(counts.sum(axis=1) - RESAMPLES).max() < 6 * (RESAMPLES * 6 / 7) ** 0.5


def test_the_draws_are_pinned() -> None:
    """Published tables depend on these draws: changing them changes the tables."""
    assert DRAWS.counts("books", 5)[:, :3].tolist() == [[1, 1, 3], [1, 2, 0], [3, 1, 0], [0, 1, 1], [0, 0, 1]]


def test_the_draws_are_philoxs() -> None:
    n = 1100
    key = int.from_bytes(hashlib.sha256(b"bootstrap dvd").digest()[:16], "big")
    raw = np.random.Philox(key=key, counter=[0, 0, 1, n]).random_raw(n * RESAMPLES).reshape(n, RESAMPLES)
    counts = Draws().counts("dvd", n, side=1)
    for resample in range(0, RESAMPLES, 199):
        drawn = [(int(number) >> 32) * n >> 32 for number in raw[:, resample]]
        assert counts[:, resample].tolist() == np.bincount(drawn, minlength=n).tolist()


def test_targets_sizes_and_sides_have_independent_draws() -> None:
    drawn = [DRAWS.counts("books", 6), DRAWS.counts("dvd", 6), DRAWS.counts("books", 6, side=1)]
    for one, other in [(0, 1), (0, 2), (1, 2)]:
        correlation = np.corrcoef(drawn[one].ravel(), drawn[other].ravel())[0, 1]
        assert abs(correlation) < 5 / (6 * RESAMPLES) ** 0.5
    assert Draws().counts("books", 6).tolist() == drawn[0].tolist()


@given(scores)
def test_statistics_of_the_drawn_runs_by_brute_force(runs: list[float]) -> None:
    mean, middle = target_mean(runs, "x", DRAWS), interquartile_mean(runs, "x", DRAWS)
    assert mean.value == pytest.approx(np.mean(runs))
    assert middle.value == pytest.approx(scipy.stats.trim_mean(runs, 0.25))
    if len(runs) < MIN_RUNS:
        assert mean.resampled is None
        assert middle.resampled is None
        return
    for resample in range(0, RESAMPLES, 397):
        drawn = np.repeat(runs, DRAWS.counts("x", len(runs))[:, resample])
        assert mean.resampled[resample] == pytest.approx(np.mean(drawn))
        assert middle.resampled[resample] == pytest.approx(scipy.stats.trim_mean(drawn, 0.25))


@given(st.lists(scores.filter(lambda runs: len(runs) >= MIN_RUNS), min_size=1, max_size=3), st.floats(0.01, 0.5))
def test_targets_count_equally(runs: list[list[float]], alpha: float) -> None:
    found = [target_mean(values, name, DRAWS) for name, values in zip("xyz", runs, strict=False)]
    estimate = over_targets(found, alpha)
    assert estimate.value == pytest.approx(np.mean([np.mean(values) for values in runs]))
    together = np.mean([one.resampled for one in found], axis=0)
    assert estimate[1:] == pytest.approx(tuple(np.quantile(together, [alpha / 2, 1 - alpha / 2])))


def test_a_target_with_few_runs_removes_the_interval() -> None:
    found = [target_mean([1.0] * n, "x", DRAWS) for n in (5, 4)]
    assert np.isnan(over_targets(found, 0.05).low)
    assert over_targets(found[:1], 0.05) == (1, 1, 1)


pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=10)


@given(pairs)
def test_probability_of_improvement_equals_mann_whitneys_u(runs: list[tuple[int, int]]) -> None:
    first, second = zip(*runs, strict=True)
    u = scipy.stats.mannwhitneyu(first, second, method="asymptotic").statistic if len({*first, *second}) > 1 else None
    expected = u / len(runs) ** 2 if u is not None else 0.5
    assert share(first, second).value == pytest.approx(expected)


@given(pairs)
def test_resamples_are_shares_of_the_drawn_runs(runs: list[tuple[int, int]]) -> None:
    first, second = (list(column) for column in zip(*runs, strict=True))
    found = share(first, second)
    assert (found.resampled is None) == (len(runs) < MIN_RUNS)
    for resample in range(0, RESAMPLES if found.resampled is not None else 0, 97):
        x, y = (
            np.repeat(values, DRAWS.counts("x", len(runs), side)[:, resample])
            for side, values in enumerate((first, second))
        )
        assert found.resampled[resample] == np.mean((x[:, None] > y) + 0.5 * (x[:, None] == y))


def test_many_runs_agree_with_scipy_() -> None:
    draw = np.random.default_rng(0)
    first, second = (draw.integers(0, 400, size=300).tolist() for _ in range(2))
    found = share(first, second)
    assert found.value == pytest.approx(scipy.stats.mannwhitneyu(first, second).statistic / 300**2)
    for resample in range(0, RESAMPLES, 499):
        x, y = (
            np.repeat(values, DRAWS.counts("x", 300, side)[:, resample]) for side, values in enumerate((first, second))
        )
        assert found.resampled[resample] == pytest.approx(scipy.stats.mannwhitneyu(x, y).statistic / 300**2)


def test_without_runs_there_is_no_share() -> None:
    assert share([], []) is None
    assert share([2] * 4, [1] * 4).resampled is None
