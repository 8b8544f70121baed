from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.results.effect import paired_effect
from msda_bench.results.signed_rank import signed_rank

# Hollander and Wolfe, example 3.1: depression factors, first visit minus second.
DEPRESSION = [Fraction(text) for text in [".952", "-.147", "1.022", ".430", ".620", ".590", ".490", "-.080", ".010"]]


def test_hollander_and_wolfe_estimate_and_interval() -> None:
    found = paired_effect(DEPRESSION, alpha=0.04)
    assert (found.hodges_lehmann, found.low, found.high) == (0.46, 0.01, 0.786)
    assert (found.median, found.wins, found.ties, found.losses) == (0.49, 7, 0, 2)


def test_an_even_number_of_differences_has_an_estimate() -> None:
    found = paired_effect([0, 4, -1, 0])
    walsh = [(a + b) / 2 for i, a in enumerate([-1, 0, 0, 4]) for b in [-1, 0, 0, 4][i:]]
    assert (found.mean, found.median, found.hodges_lehmann) == (0.75, 0, np.median(walsh))
    assert (found.wins, found.ties, found.losses) == (1, 2, 1)


@pytest.mark.parametrize(("n", "bounded"), [(1, False), (5, False), (6, True), (20, True)])
def test_an_interval_needs_six_differences(n: int, bounded: bool) -> None:
    found = paired_effect(range(1, n + 1))
    assert (found.low is not None, found.high is not None) == (bounded, bounded)


@given(st.lists(st.integers(-1000, 1000), min_size=6, max_size=20), st.sampled_from([0.05, 0.1]))
def test_the_interval_holds_the_shifts_that_the_test_does_not_reject(differences: list[int], alpha: float) -> None:
    found = paired_effect(differences, alpha)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.hodges_lehmann <= found.high
    for end, outwards in ((found.low, -1), (found.high, 1)):
        # Just beside an end there is no Walsh average, so the test has no zeros, and ties only among equal magnitudes.
        outside = Fraction(end) + outwards * Fraction(1, 1000)
        shifted = [number - outside for number in differences]
        if len({abs(number) for number in shifted}) == len(shifted):
            assert signed_rank(shifted, "two-sided").p <= alpha
            inside = [number - (Fraction(end) - outwards * Fraction(1, 1000)) for number in differences]
            assert found.low == found.high or signed_rank(inside, "two-sided").p > alpha


@given(st.lists(st.fractions(-9, 9, max_denominator=50), min_size=1, max_size=15))
def test_negated_differences_have_the_negated_effect(differences: list[Fraction]) -> None:
    found, turned = paired_effect(differences), paired_effect([-number for number in differences])
    assert (turned.mean, turned.median, turned.hodges_lehmann) == (-found.mean, -found.median, -found.hodges_lehmann)
    assert (turned.low, turned.high) == ((None, None) if found.low is None else (-found.high, -found.low))
    assert (turned.wins, turned.ties, turned.losses) == (found.losses, found.ties, found.wins)


def test_no_differences_are_refused() -> None:
    with pytest.raises(ValueError, match="no differences"):
        paired_effect([])


@pytest.mark.parametrize("n", [7, 200, 301])
def test_the_estimate_and_interval_are_walsh_averages(n: int) -> None:
    draw = np.random.default_rng(n)
    values = draw.integers(-1000, 1000, n).tolist()
    first, second = np.triu_indices(n)
    walsh = np.sort((np.array(values)[first] + np.array(values)[second]) / 2)
    found = paired_effect(values)
    assert found.hodges_lehmann == np.median(walsh)
    assert {found.low, found.high} <= {*walsh.tolist()}
    below, above = (walsh < found.low).sum(), (walsh > found.high).sum()
    assert abs(below - above) <= n  # equally far from both ends, but for ties
