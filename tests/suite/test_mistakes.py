from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from msda_bench.suite.mistakes import dotted, hint, shown


def test_dotted_joins_keys_and_indices():
    assert dotted(("a", 0, 1, "b")) == "a[0][1].b"
    assert dotted(("a b", "c", "line\nbreak")) == "['a b'].c['line\\nbreak']"


def test_shown_describes_values_briefly():
    values = [None, True, 1, 1.5, "x", [], [1], {}, {"a": 1}, "\x1b[31m"]
    texts = "null|true|1|1.5|'x'|an empty list|a list|an empty mapping|a mapping|'\\x1b[31m'"
    assert [shown(value) for value in values] == texts.split("|")


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
