from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t, ttest_ind_from_stats

from msda_bench.stats.standardised import FAR, gap
from msda_bench.stats.summary import summarize

numbers = st.lists(st.integers(0, 1000).map(Fraction), min_size=2, max_size=30)


def test_no_run_has_no_gap():
    assert gap(summarize([]), 80.0, 0.5, 20) is None


def test_by_hand():
    found = gap(summarize([79, 81, 83]), 80.0, 0.5, 20)  # ours 81, variance 4, squared error 4 / 3
    assert found.difference == 1
    assert found.z == pytest.approx(1 / math.sqrt(4 / 3 + 0.25))
    assert found.df == pytest.approx((4 / 3 + 0.25) ** 2 / ((4 / 3) ** 2 / 2 + 0.25**2 / 19))


@given(numbers, st.floats(0, 1000), st.floats(0.01, 100), st.integers(2, 50))
def test_it_is_welchs_t(values, mean, error, runs):
    ours = summarize(values)
    found = gap(ours, mean, error, runs)
    deviations = (ours.standard_error * math.sqrt(ours.n), error * math.sqrt(runs))
    oracle = ttest_ind_from_stats(ours.mean, deviations[0], ours.n, mean, deviations[1], runs, equal_var=False)
    assert found.z == pytest.approx(oracle.statistic, abs=1e-9)
    assert 2 * t.sf(abs(found.z), found.df) == pytest.approx(oracle.pvalue, abs=1e-9)


@given(st.integers(2, 40), st.floats(0.01, 10), st.floats(-100, 100))
def test_one_run_is_held_to_the_spread_of_the_published_ones(runs, error, away):
    found = gap(summarize([Fraction(50)]), 50 - away, error, runs)
    deviation = error * math.sqrt(runs)
    oracle = ttest_ind_from_stats(away, deviation, runs, 0, deviation, runs).statistic  # the same with `runs` of ours
    assert found.z == pytest.approx(oracle * math.sqrt(2 / (runs + 1)), abs=1e-9)
    assert found.df == runs - 1


def test_chance_is_that_of_students_t():
    many = gap(summarize([79, 81] * 500), 80.0, 0.001, 20)
    assert many.chance == pytest.approx(2 * t.sf(FAR, many.df))
    few = gap(summarize([79, 81]), 80.0, 0.001, 20)
    assert few.df == pytest.approx(1, abs=1e-3)
    assert few.chance == pytest.approx(2 * t.sf(FAR, 1), abs=1e-3)  # 0.295


def test_near_includes_the_limit():
    ours = summarize([80, 80])
    assert gap(ours, 79.0, 0.5, 20).is_near
    assert gap(ours, 81.0, 0.5, 20).is_near
    assert not gap(ours, 78.99, 0.5, 20).is_near
