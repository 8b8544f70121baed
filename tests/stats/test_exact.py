from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from msda_bench.stats.exact import scaled_integers

exact = st.one_of(st.integers(), st.fractions(), st.floats(allow_nan=False, allow_infinity=False))


@given(st.lists(exact, max_size=8))
def test_nothing_is_rounded(values: list[int | float | Fraction]) -> None:
    numerators, scale = scaled_integers(values)
    assert [Fraction(numerator, scale) for numerator in numerators] == [Fraction(value) for value in values]


def test_the_denominator_is_the_least() -> None:
    assert scaled_integers([Fraction(1, 4), Fraction(1, 6), 0.5]) == ([3, 2, 6], 12)
    assert scaled_integers([]) == ([], 1)
