from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.results.run_differences import differences
from msda_bench.store.files import encode, result_bytes
from msda_bench.store.record import Curves, Outcome, Record

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
SHARP = {"name": "sharpmax", "version": 1, "params": {"gamma": 0.9}}
HARD = {"name": "hardmax", "version": 1, "params": {}}


@given(JSON, JSON)
def test_a_difference_is_named_exactly_where_two_values_differ(a, b):
    assert bool(list(differences(a, b))) == (a != b)
    assert [(what, second, first) for what, first, second in differences(a, b)] == list(differences(b, a))


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ({"t": {"epochs": 1, "b": 2}}, {"t": {"epochs": 3, "b": 2}}, ("t.epochs", "1", "3")),
        ({"t": {}}, {"t": {"precision": "bf16"}}, ("t.precision", "default", "bf16")),
        ({"a": SHARP}, {"a": SHARP | {"params": {"gamma": 0.5}}}, ("a.params.gamma", "0.9", "0.5")),
        ({"a": SHARP}, {"a": HARD}, ("a", "sharpmax(gamma=0.9)", "hardmax")),
        ({"a": None}, {"a": HARD}, ("a", "none", "hardmax")),
        ({"s": ["x"]}, {"s": ["x", "y"]}, ("s", "x", "x, y")),
        ({"v": [HARD]}, {"v": []}, ("v", "hardmax", "none")),
        ({"f": "ab" * 32}, {"f": "cd" * 32}, ("f", "abababababab", "cdcdcdcdcdcd")),
    ],
)
def test_differences_are_described_in_words(a, b, found):
    assert list(differences(a, b)) == [found]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"timing": {"train": 9.0}, "provenance": {"device": "cuda"}}, True),
        ({"curves": Curves([["x"]], [[0.25]], [[0.5]], [[1.0]])}, False),
        ({"outcome": Outcome(100, 81)}, False),
        ({"message": "validator 'v' raised"}, False),
        ({"validation": {"v": 0.5}}, False),
        ({"bound": {"weights_norm": 0.5}}, False),
    ],
)
def test_files_without_timing_and_provenance_show_equal_results(
    tmp_path: Path, change: dict[str, Any], same: bool
) -> None:
    record = Record("0" * 64, {}, "ok", Outcome(100, 80), Curves([["x"]], [[0.5]], [[0.5]], [[1.0]]), timing={"t": 1.0})
    found = []
    for number, one in enumerate((record, replace(record, **change))):
        path = tmp_path / f"{number}.json"
        path.write_bytes(encode(one))
        found.append(result_bytes(path))
    assert (found[0] == found[1]) is same


def test_a_file_whose_fields_cannot_be_found_shows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(encode(Record("0" * 64, {"x": {"a": 1, "timing": {}}}, "ok", Outcome(100, 80))))
    assert result_bytes(path) is None
    assert result_bytes(tmp_path / "none.json") is None
