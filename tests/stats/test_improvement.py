from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.stats.bootstrap import MIN_RUNS, RESAMPLES, Draws, percentiles
from msda_bench.stats.improvement import Rival, Share, probability_of_improvement

DRAWS = Draws()


def share(first: Sequence[int], second: Sequence[int], target: str = "x") -> Share | None:
    return Rival(second, target, DRAWS).share(first)


pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=10)


@given(pairs)
def test_is_mann_and_whitneys_u(runs: list[tuple[int, int]]) -> None:
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


def test_many_runs_are_as_scipy_has_them_though_in_parts() -> None:
    draw = np.random.default_rng(0)
    first, second = (draw.integers(0, 400, size=300).tolist() for _ in range(2))
    found = share(first, second)
    assert found.value == pytest.approx(scipy.stats.mannwhitneyu(first, second).statistic / 300**2)
    for resample in range(0, RESAMPLES, 499):
        x, y = (
            np.repeat(values, DRAWS.counts("x", 300, side)[:, resample]) for side, values in enumerate((first, second))
        )
        assert found.resampled[resample] == pytest.approx(scipy.stats.mannwhitneyu(x, y).statistic / 300**2)


def test_huge_merits_are_compared_exactly() -> None:
    huge = 10**40
    assert share([huge + 1, huge], [huge, huge]).value == 0.75


def test_the_mean_over_targets() -> None:
    shares = [share([2] * 5, [1] * 5), share([1, 2, 3, 4, 5], [3] * 5, "y")]
    found = probability_of_improvement(shares, alpha=0.05)
    assert found.value == 0.75
    expected = percentiles((1 + shares[1].resampled) / 2, 0.05)
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high))


def test_what_cannot_be_told() -> None:
    full, few = share([2] * 5, [1] * 5), share([2] * 4, [1] * 4, "y")
    assert share([], []) is None
    assert probability_of_improvement([], 0.05) is None
    assert probability_of_improvement([full, None], 0.05) is None
    assert probability_of_improvement([full, few], 0.05).interval is None
