from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msda_bench.results.run_differences import differences

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
SHARP = {"name": "sharpmax", "version": 1, "params": {"gamma": 0.9}}
HARD = {"name": "hardmax", "version": 1, "params": {}}


@settings(max_examples=40)
@given(JSON, JSON)
def test_a_difference_is_named_exactly_where_two_values_differ(a, b):
    assert bool(list(differences(a, b))) == (a != b)
    assert [(what, second, first) for what, first, second in differences(a, b)] == list(differences(b, a))


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ({"t": {"epochs": 1, "b": 2}}, {"t": {"epochs": 3, "b": 2}}, ("t.epochs", "1", "3")),
        ({"t": {}}, {"t": {"precision": "bf16"}}, ("t.precision", "default", "bf16")),
        ({"a": SHARP}, {"a": SHARP | {"params": {"gamma": 0.5}}}, ("a.params.gamma", "0.9", "0.5")),
        ({"a": SHARP}, {"a": HARD}, ("a", "sharpmax(gamma=0.9)", "hardmax")),
        ({"a": None}, {"a": HARD}, ("a", "none", "hardmax")),
        ({"v": [HARD, "x"]}, {"v": []}, ("v", "hardmax, x", "none")),
        ({"f": "ab" * 32}, {"f": "cd" * 32}, ("f", "abababababab", "cdcdcdcdcdcd")),
    ],
)
def test_differences_are_described_in_words(a, b, words):
    assert list(differences(a, b)) == [words]
