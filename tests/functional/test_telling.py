"""What one value of a row tells about another."""

import numpy as np
import pytest
from scipy import stats

from msda_bench.functional import codes_of, order_told, share_told, told_by, told_by_neighbours


def test_a_code_names_the_most_frequent_class_of_its_rows():
    codes = np.repeat([3, 8], 10)
    of = np.array([1] * 8 + [0] * 2 + [2] * 10)
    assert share_told(codes, of) == pytest.approx(18 / 20)
    assert share_told(np.zeros(20, int), of) == pytest.approx(10 / 20)


def test_codes_of_few_rows_or_with_a_tie_tell_nothing():
    of = np.array([0] * 12 + [1] * 8)
    assert share_told(np.arange(20), of) == pytest.approx(12 / 20)
    assert share_told(np.repeat(np.arange(5), 4), of) == pytest.approx(12 / 20)
    tied = np.array([0, 0, 0, 1, 1, 1] + [0] * 6)
    assert share_told(np.repeat([0, 1], 6), tied) == pytest.approx(9 / 12)
    assert share_told(np.zeros(0, int), np.zeros(0, int)) == 0


def test_numbers_become_codes_in_their_order_and_nan_has_its_own():
    few = codes_of(np.array([5.0, np.nan, -1.0, 5.0, 2.0]))
    assert few[0] == few[3] > few[4] > few[2]
    assert few[1] not in few[[0, 2, 4]]
    many = np.random.default_rng(0).normal(size=1000)
    codes = codes_of(many)
    assert np.bincount(codes).tolist() == [50] * 20
    assert (np.diff(codes[np.argsort(many)]) >= 0).all()
    assert len(np.unique(codes_of(np.append(np.zeros(900), many[:100])))) < 20


def test_what_is_told_counts_beside_what_is_right_without_it():
    of = np.repeat([0, 1], [30, 10])
    told, nothing = told_by(of, of), told_by(np.zeros(40, int), of)
    assert (told, nothing) == ((1.0, 0.75), (0.75, 0.75))
    assert told.exceeds(0.99)
    assert not nothing.exceeds(0)


def test_rows_in_the_order_of_their_classes_are_told_by_the_row_before():
    of = np.repeat([0, 1], [30, 10])
    assert told_by_neighbours(of) == pytest.approx((38 / 39, 0.625))
    assert told_by_neighbours(of[np.random.default_rng(0).permutation(40)]).share < 0.8


def test_order_is_told_by_the_mean_rank_correlation_over_the_rows_of_each_place():
    of, places = np.arange(40.0), np.repeat([0, 1], [30, 10])
    falling = np.where(places == 0, np.exp(of), -of)
    assert order_told(falling, of, places) == pytest.approx(1)
    assert order_told(np.where(places == 0, of, 5.0), of, places) == pytest.approx(30 / 40)
    noisy = np.random.default_rng(0).normal(size=40)
    by_place = [stats.spearmanr(noisy[places == place], of[places == place]).statistic for place in (0, 1)]
    assert order_told(noisy, of, places) == pytest.approx((30 * abs(by_place[0]) + 10 * abs(by_place[1])) / 40)
    tied = noisy.round()
    expected = stats.spearmanr(tied[places == 0], of[places == 0]).statistic
    assert order_told(np.where(places == 0, tied, np.nan), of, places) == pytest.approx(abs(expected))
    assert order_told(np.full(40, np.nan), of, places) == 0
