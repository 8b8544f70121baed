from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.report.csv_text import csv_text


def test_each_kind_of_value_has_one_form() -> None:
    rows = [{"a": None, "b": True, "c": 3, "d": 1 / 3}, {"a": "x,y", "b": False, "c": -3, "d": -2.5e-9}]
    assert csv_text(("a", "b", "c", "d"), rows) == 'a,b,c,d\n,true,3,0.333333\n"x,y",false,-3,-2.5e-09\n'


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_formulas_are_disarmed(text: str) -> None:
    ((_,), (field,)) = csv.reader(io.StringIO(csv_text(("a",), [{"a": text}]), newline=""))
    assert field == f"'{text.strip()}"


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_text_is_read_back(text: str) -> None:
    written = csv_text(("a", "b"), [{"a": text, "b": 1}])
    header, row = csv.reader(io.StringIO(written, newline=""))
    assert (header, row[1]) == (["a", "b"], "1")
    assert row[0] in {" ".join(text.split()), "'" + " ".join(text.split())}
    assert not row[0].startswith(("=", "+", "-", "@"))
    assert written.count("\n") == 2
