from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.results.summary import Summary, summarize

numbers = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20)


def test_one_run_has_no_standard_error_and_none_has_no_mean() -> None:
    assert summarize([7]) == pytest.approx(Summary(1, 7.0, math.nan), nan_ok=True)
    assert summarize([]) == pytest.approx(Summary(0, math.nan, math.nan), nan_ok=True)


@given(numbers)
def test_standard_error_is_the_sample_deviation_over_root_n(values: list[float]) -> None:
    found = summarize(values)
    assert found.mean == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert found.standard_error == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)), abs=1e-9)


@given(numbers)
def test_the_order_of_values_does_not_matter(values: list[float]) -> None:
    assert summarize(sorted(values)).mean == summarize(values).mean
    assert summarize(sorted(values)).standard_error == pytest.approx(summarize(values).standard_error, rel=1e-12)


def test_equal_values_have_no_error() -> None:
    assert summarize([0.1] * 7)[1:] == (pytest.approx(0.1), 0.0)


def test_values_with_squares_beyond_float64_are_summarised() -> None:
    assert summarize([1e300, 3e300]) == pytest.approx(Summary(2, 2e300, 1e300))
