from __future__ import annotations

import pytest

from msda_bench.store.record import SCHEMA, UPGRADES, upgraded

RENAMED = {1: lambda old: {"b": old["a"]}, 2: lambda old: old | {"c": 0}}


@pytest.mark.parametrize(
    ("schema", "fields", "expected"),
    [(1, {"a": 1}, {"b": 1, "c": 0}), (2, {"b": 1}, {"b": 1, "c": 0}), (3, {"b": 1, "c": 5}, {"b": 1, "c": 5})],
)
def test_each_layout_is_taken_to_the_newest_one_step_at_a_time(schema, fields, expected):
    assert upgraded(fields, schema, 3, RENAMED) == expected


@pytest.mark.parametrize("schema", [0, -1])
def test_a_layout_that_never_was_is_refused(schema):
    with pytest.raises(ValueError, match=f"has schema {schema}, which no msda-bench wrote"):
        upgraded({}, schema, 3, RENAMED)


def test_every_layout_since_the_first_is_read():
    assert set(UPGRADES) == set(range(1, SCHEMA))
