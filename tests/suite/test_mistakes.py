from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.suite.mistakes import dotted, hint, shown
from msda_bench.suite.reader import Mark, Mistake


@pytest.mark.parametrize(
    ("loc", "text"),
    [
        ((), ""),
        (("methods", "DARN", "mu"), "methods.DARN.mu"),
        (("targets", 2), "targets[2]"),
        (("a", 0, 1, "b"), "a[0][1].b"),
        (("a b", "c"), "['a b'].c"),
        (("a", "line\nbreak"), "a['line\\nbreak']"),
    ],
)
def test_dotted(loc, text):
    assert dotted(loc) == text


def test_a_mistake_in_the_file_as_a_whole_has_no_path():
    assert Mistake(Mark(1, 1), (), "is empty").line("s.yaml") == "s.yaml:1:1: is empty"
    assert Mistake(Mark(3, 4), ("mu",), "is missing").line("s.yaml") == "s.yaml:3:4: mu: is missing"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (1, "1"),
        (1.5, "1.5"),
        ("x", "'x'"),
        ([], "an empty list"),
        ([1], "a list"),
        ({}, "an empty mapping"),
        ({"a": 1}, "a mapping"),
        ("\x1b[31m", "'\\x1b[31m'"),
    ],
)
def test_shown(value, text):
    assert shown(value) == text


@given(st.text())
def test_shown_is_one_short_line(text):
    found = shown(text)
    assert len(found) <= 60
    assert found.isprintable()


def test_hint_names_what_is_close_or_all_there_is():
    assert hint("sharpmx", ["sharpmax", "uniform"]) == " (did you mean 'sharpmax'?)"
    assert hint("zzz", ["sharpmax", "uniform"]) == " (known: sharpmax, uniform)"
    assert hint("zzz", []) == ""
    assert hint("zzz", map(str, range(30))).endswith(", 19, ...)")
