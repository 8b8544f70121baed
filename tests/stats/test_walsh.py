from __future__ import annotations

import random
from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.stats.walsh import walsh_sums


def brute_force(ordered: list[int]) -> list[int]:
    return sorted(one + other for one, other in combinations_with_replacement(ordered, 2))


@given(st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=12).map(sorted))
def test_every_place_of_a_few(ordered: list[int]) -> None:
    expected = brute_force(ordered)
    assert walsh_sums(ordered, range(len(expected))) == pytest.approx(expected, rel=0, abs=2)


@pytest.mark.parametrize("spread", [0, 3, 1000, 2**60 - 1])
@pytest.mark.parametrize("n", [200, 201, 302])
def test_some_places_of_many(n: int, spread: int) -> None:
    draw = random.Random(n + spread)
    ordered = sorted(draw.randint(-spread, spread) for _ in range(n))
    expected = brute_force(ordered)
    places = [0, 1, len(expected) // 3, len(expected) // 2, len(expected) - 2, len(expected) - 1]
    assert walsh_sums(ordered, places) == [expected[place] for place in places]


@pytest.mark.parametrize("n", [7, 250])
def test_of_huge_numbers_no_digit_is_lost_that_a_float_would_keep(n: int) -> None:
    draw = random.Random(n)
    ordered = sorted(draw.randint(-(10**40), 10**40) for _ in range(n))
    expected = brute_force(ordered)
    places = range(0, len(expected), 97)
    assert walsh_sums(ordered, places) == pytest.approx(
        [expected[place] for place in places], rel=0, abs=10**40 / 2**52
    )
