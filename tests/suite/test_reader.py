from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msda_bench.suite.mistakes import Fault
from msda_bench.suite.reader import MAX_DEPTH, MAX_EVENTS, Mark, parse_document, plain_value


def reported(data: str | bytes) -> list[str]:
    raw = data if isinstance(data, bytes) else data.encode()
    return parse_document(raw, "f").lines()


def test_values_have_their_places():
    document = parse_document(b"a: 1\nb:\n  - x\n  - {c: yes, 'd e': null}\n", "f")
    assert document.value == {"a": 1, "b": ["x", {"c": "yes", "d e": None}]}
    assert document.mistakes == []
    assert document.places == {  # of each key or item, and of its value
        (): (Mark(1, 1), Mark(1, 1)),
        ("a",): (Mark(1, 1), Mark(1, 4)),
        ("b",): (Mark(2, 1), Mark(3, 3)),
        ("b", 0): (Mark(3, 5), Mark(3, 5)),
        ("b", 1): (Mark(4, 5), Mark(4, 5)),
        ("b", 1, "c"): (Mark(4, 6), Mark(4, 9)),
        ("b", 1, "d e"): (Mark(4, 14), Mark(4, 21)),
    }


def test_quoted_words_are_text():
    assert parse_document(b"['1', \"null\", 'true', '']", "f").value == ["1", "null", "true", ""]


def test_block_text_and_comments():
    assert parse_document(b"a: |\n  1\n  2\nb: >-\n  x\n  y # no comment\n# a comment\n", "f").value == {
        "a": "1\n2\n",
        "b": "x y # no comment",
    }


def test_byte_order_mark_and_yaml_directive_and_windows_lines_are_fine():
    document = parse_document(b"\xef\xbb\xbf%YAML 1.2\r\n---\r\na: 1\r\nb: 2\r\n...\r\n", "f")
    assert document.value == {"a": 1, "b": 2}
    assert document.places["b",] == (Mark(4, 1), Mark(4, 4))
    assert document.mistakes == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ["f:1:1: is empty"]),
        ("# only a comment\n", ["f:1:1: is empty"]),
        ("a: 1\n---\nb: 2\n", ["f:2:1: holds a second document; a suite is one"]),
        ("a: 1\na: 2\n", ["f:2:1: a: duplicate key, first on line 1"]),
        ("x: {a: 1, b: 2,\n  a: 3}\n", ["f:2:3: x.a: duplicate key, first on line 1"]),
        ("a: &x 1\n", ["f:1:4: a: anchors are not allowed; remove &x"]),
        ("a: *x\n", ["f:1:4: a: aliases are not allowed; write out what *x stands for"]),
        ("a: !!int 1\n", ["f:1:4: a: tags are not allowed; remove '!!int'"]),
        ("a: !mine [1]\n", ["f:1:4: a: tags are not allowed; remove '!mine'"]),
        ("!!python/object:os.system {}\n", ["f:1:1: tags are not allowed; remove '!!python/object:os.system'"]),
        ("a:\n  <<: {b: 1}\n", ["f:2:3: a: merge keys (<<) are not allowed; write the keys out"]),
        ("1: 2\n", ["f:1:1: a key must be text; write '1' in quotes"]),
        ("a: {null: 2}\n", ["f:1:5: a: a key must be text; write 'null' in quotes"]),
        ("true: 2\n", ["f:1:1: a key must be text; write 'true' in quotes"]),
        ("? [a, b]\n: 1\n", ["f:1:3: a key must be text"]),
        ("? {a: 1}\n: 1\n", ["f:1:3: a key must be text"]),
        ("&x a: 1\n", ["f:1:1: a: anchors are not allowed; remove &x"]),
        ("*x : 1\n", ["f:1:1: a key must be text"]),
        (".inf: 1\n", ["f:1:1: .inf: must be a finite number, not .inf"]),
        ("a: .inf\n", ["f:1:4: a: must be a finite number, not .inf"]),
        ("a: [1, .nan]\n", ["f:1:8: a[1]: must be a finite number, not .nan"]),
        ("a: 1e999\n", ["f:1:4: a: is a number too large for a 64-bit float"]),
        ("a: 99999999999999999999\n", ["f:1:4: a: is a whole number beyond 64 bits"]),
        ('a: "\\0"\n', ["f:1:4: a: holds the control character U+0000"]),
        ('a: "\\ud800"\n', ["f:1:4: a: holds the control character U+D800"]),
        ("a: b: c\n", ["f:1:5: is not valid YAML: mapping values are not allowed here"]),
        (
            "a: [1, 2\n",
            ["f:2:1: is not valid YAML: while parsing a flow sequence, expected ',' or ']', but got '<stream end>'"],
        ),
        ("a: 'b\n", ["f:2:1: is not valid YAML: while scanning a quoted scalar, found unexpected end of stream"]),
        (
            "%YAML 3.0\n---\na: 1\n",
            ["f:1:1: is not valid YAML: found incompatible YAML document (version 1.* is required)"],
        ),
    ],
)
def test_each_mistake_has_its_line(text, lines):
    assert reported(text) == lines


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"a: 1\nb: \xff\n", "f:2:4: is not UTF-8 (byte 0xff)"),
        (b"\xff\xfea\x00", "f:1:1: is not UTF-8 (byte 0xff)"),
        (b"a: 1\nb: \x00\n", "f:2:4: holds the control character U+0000"),
        (b"a:\n\t- 1\n", "f:2:1: holds a tab; use spaces"),
        (b"a: 1\t# x\n", "f:1:5: holds a tab; use spaces"),
        (b"a: \x1b[31m\n", "f:1:4: holds the control character U+001B"),
        ("a: \u2028\n".encode(), "f:1:4: holds the control character U+2028"),
        ("a: \x85\n".encode(), "f:1:4: holds the control character U+0085"),
    ],
)
def test_bytes_that_are_not_text_are_refused(data, line):
    assert reported(data) == [line]


def test_all_mistakes_are_reported_and_one_does_not_hide_the_next():
    text = "a: &x 1\na: *x\nb: {c: .nan, c: !!str 2}\n1: {d: 1, d: 2}\n"
    assert reported(text) == [
        "f:1:4: a: anchors are not allowed; remove &x",
        "f:2:1: a: duplicate key, first on line 1",
        "f:2:4: a: aliases are not allowed; write out what *x stands for",
        "f:3:8: b.c: must be a finite number, not .nan",
        "f:3:14: b.c: duplicate key, first on line 3",
        "f:3:17: b.c: tags are not allowed; remove '!!str'",
        "f:4:1: a key must be text; write '1' in quotes",
        "f:4:11: 1.d: duplicate key, first on line 4",
    ]


def test_consequences_of_an_unreadable_value_are_not_reported():
    document = parse_document(b"a: {b: .inf}\n", "f")
    document.add(Fault(("a", "b"), "must be text, not null"))
    document.add(Fault(("a", "b", "c"), "is missing", "missing"))
    document.add(Fault(("a",), "is too small"))
    assert document.lines() == ["f:1:4: a: is too small", "f:1:8: a.b: must be a finite number, not .inf"]


def test_missing_keys_have_places():
    document = parse_document(b"a:\n  b: {c: x}\nd: x\n", "f")
    document.add(Fault(("a", "b", "z"), "is missing", "missing"))
    document.add(Fault(("d", "z"), "is missing", "missing"))
    document.add(Fault(("z",), "is missing", "missing"))
    assert document.lines() == ["f:1:1: z: is missing", "f:2:3: a.b.z: is missing", "f:3:4: d.z: is missing"]


def test_nesting_up_to_the_limit_is_read():
    assert reported("[" * MAX_DEPTH + "]" * MAX_DEPTH) == []


def test_size_in_values_is_limited():
    (line,) = reported("[" + "a," * MAX_EVENTS + "]")
    assert line.endswith(f"holds more than {MAX_EVENTS} keys and values")


@pytest.mark.parametrize("text", ['a: "\\UFFFFFFFF"', 'a: "\\U00110000"', "%YAML 1." + "9" * 6000 + "\n---\na: 1"])
def test_a_failure_of_the_parser_is_reported_in_one_line(text):
    assert reported(text) == [
        "f:1:1: is not valid YAML: an escape such as \\U0010FFFF, or a directive, is out of range"
    ]


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["", "~", "null", "Null", "NULL"], None),
        (["true", "TRUE"], True),
        (["False", "false"], False),
        (["0", "-0"], 0),
        (["+12"], 12),
        (["010"], 10),
        (["0o10"], 8),
        (["0xFf"], 255),
        (["-7"], -7),
        (["1e3"], 1000.0),
        (["1.0e-3"], 0.001),
        (["1."], 1.0),
        ([".5"], 0.5),
        (["-1.5E+2"], -150.0),
        (["0.0", "-0.0", "1e-999"], 0.0),
    ],
)
def test_plain_values_are_read_as_yaml_reads_them(words, value):
    assert {repr(plain_value(word)) for word in words} == {repr(value)}


# In YAML 1.1 the first ones are more than text.
WORDS = "yes no on off y N tRUE nULL 1:30 190:20:30 1_000 0b1 0o8 0xg 2001-01-01 . + - 1e e3 1.2.3 +0o7 \u0661 = +.nan"


@pytest.mark.parametrize("text", WORDS.split())
def test_plain_text_is_read_as_text(text):
    assert plain_value(text) == text


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ([".inf", "-.Inf", "+.INF", ".nan", ".NaN", ".NAN"], "^must be a finite number, not "),
        (["1e999", "-1e400", "1" * 400 + ".0"], "^is a number too large for a 64-bit float$"),
        (
            ["9223372036854775808", "-9223372036854775808", "9" * 100_000, "0x" + "f" * 99],
            "^is a whole number beyond 64 bits$",
        ),
    ],
)
def test_unusable_numbers_are_refused(words, what):
    for word in words:
        with pytest.raises(ValueError, match=what):
            plain_value(word)


@given(st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_read_as_json_writes_them(number):
    found = plain_value(json.dumps(number))
    assert found == number
    assert type(found) is type(number)
