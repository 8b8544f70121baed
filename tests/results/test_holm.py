from __future__ import annotations

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.results.pairs import holm

p_lists = st.lists(st.floats(0, 1), min_size=1, max_size=7)


def test_published_values() -> None:
    assert holm([0.01, 0.02, 0.03, 0.04, 0.005]) == pytest.approx((0.04, 0.06, 0.06, 0.06, 0.025), rel=1e-12)


def test_small_families() -> None:
    assert holm([]) == []
    assert holm([0.2]) == [0.2]
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@given(p_lists)
def test_is_the_closed_test_of_bonferroni(p_values: list[float]) -> None:
    indices = range(len(p_values))
    subsets = list(chain.from_iterable(combinations(indices, size) for size in range(1, len(p_values) + 1)))
    for index, adjusted in enumerate(holm(p_values)):
        closed = max(min(1.0, len(some) * min(p_values[i] for i in some)) for some in subsets if index in some)
        assert adjusted == pytest.approx(closed)


@given(p_lists, st.randoms(use_true_random=False))
def test_keeps_each_p_in_its_place(p_values: list[float], draw: object) -> None:
    order = list(range(len(p_values)))
    draw.shuffle(order)  # type: ignore[attr-defined]
    adjusted = holm(p_values)
    assert holm([p_values[i] for i in order]) == [adjusted[i] for i in order]
