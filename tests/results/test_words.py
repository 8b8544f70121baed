from __future__ import annotations

import pytest

from msda_bench.results.words import spans


@pytest.mark.parametrize(
    ("numbers", "reported"), [([], ""), ([3], "3"), ([2, 0, 1], "0-2"), ([0, 1, 3, 7, 8, 9], "0-1, 3, 7-9")]
)
def test_neighbours_are_one(numbers, reported):
    assert spans(numbers) == reported
