from __future__ import annotations

import contextlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.suite.reader import plain_value


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_null(text):
    assert plain_value(text) is None


@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), ("False", False), ("false", False)])
def test_bool(text, value):
    assert plain_value(text) is value


@pytest.mark.parametrize(
    "text", ["yes", "no", "on", "off", "y", "N", "tRUE", "nULL", "1:30", "190:20:30", "1_000", "0b1", "0o8", "0xg", "."]
)
def test_what_yaml_1_1_took_for_something_else_is_text(text):
    assert plain_value(text) == text


@pytest.mark.parametrize("text", ["2001-01-01", "+", "-", "1e", "e3", "1.2.3", "+0o7", "١", "=", "+.nan"])  # noqa: RUF001
def test_text(text):
    assert plain_value(text) == text


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("-0", 0), ("+12", 12), ("010", 10), ("0o10", 8), ("0xFf", 255), ("-7", -7)]
)
def test_whole_numbers(text, value):
    found = plain_value(text)
    assert found == value
    assert type(found) is int


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e3", 1000.0), ("1.0e-3", 0.001), ("1.", 1.0), (".5", 0.5), ("-1.5E+2", -150.0), ("0.0", 0.0), ("1e-999", 0.0)],
)
def test_floats(text, value):
    found = plain_value(text)
    assert found == value
    assert type(found) is float


def test_minus_zero_is_zero():
    assert math.copysign(1, plain_value("-0.0")) == 1


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN", ".NAN"])
def test_not_finite(text):
    with pytest.raises(ValueError, match=r"^must be a finite number, not "):
        plain_value(text)


@pytest.mark.parametrize("text", ["1e999", "-1e400", "1" * 400 + ".0"])
def test_too_large_a_float(text):
    with pytest.raises(ValueError, match=r"^is a number too large for a 64-bit float$"):
        plain_value(text)


@pytest.mark.parametrize("text", ["9223372036854775808", "-9223372036854775808", "9" * 100_000, "0x" + "f" * 99])
def test_too_large_a_whole_number(text):
    with pytest.raises(ValueError, match=r"^is a whole number beyond 64 bits$"):
        plain_value(text)


@given(st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_as_json_writes_them(number):
    found = plain_value(json.dumps(number))
    assert found == number
    assert type(found) is type(number)


@given(st.text())
def test_any_text_is_a_value_or_refused(text):
    with contextlib.suppress(ValueError):
        value = plain_value(text)
        assert value is None or isinstance(value, str | int | float)
