"""YAML 1.2 as suites use it, with the place of each value and each mistake."""

import pytest

from msda_bench.suite.issues import ValidationIssue
from msda_bench.suite.reader import MAX_DEPTH, MAX_EVENTS, Mark, parse_document

INVALID = "is not valid YAML"
OUT_OF_RANGE = f"1:1: {INVALID}: an escape such as \\U0010FFFF, or a directive, is out of range"


def reported(data):
    raw = data if isinstance(data, bytes) else data.encode()
    return [line.removeprefix("f:") for line in parse_document(raw, "f").lines()]


def plain_value(text):
    document = parse_document(f"- {text}".encode(), "f")
    assert document.issues == []
    return document.value[0]


def test_values_have_their_places():
    document = parse_document(
        b"\xef\xbb\xbf%YAML 1.2\r\n---\r\na: 1\r\nb:\n  - x\n  - {c: yes, 'd e': null}\n...\r\n", "f"
    )
    assert document.value == {"a": 1, "b": ["x", {"c": "yes", "d e": None}]}
    assert document.issues == []
    assert document.places == {  # of each key or item, and of its value
        (): (Mark(3, 1), Mark(3, 1)),
        ("a",): (Mark(3, 1), Mark(3, 4)),
        ("b",): (Mark(4, 1), Mark(5, 3)),
        ("b", 0): (Mark(5, 5), Mark(5, 5)),
        ("b", 1): (Mark(6, 5), Mark(6, 5)),
        ("b", 1, "c"): (Mark(6, 6), Mark(6, 9)),
        ("b", 1, "d e"): (Mark(6, 14), Mark(6, 21)),
    }


def test_quoted_words_and_block_text_are_text_and_nesting_up_to_the_limit_is_read():
    text = b"a: |\n  1\n  2\nb: >-\n  x\n  y # no comment\n# a comment\nc: ['1', \"null\", 'true', '']\n"
    value = {"a": "1\n2\n", "b": "x y # no comment", "c": ["1", "null", "true", ""]}
    assert parse_document(text, "f").value == value
    assert reported("[" * MAX_DEPTH + "]" * MAX_DEPTH) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "1:1: is empty"),
        ("a: 1\n---\nb: 2\n", "2:1: holds a second document; a suite is one"),
        ("x: {a: 1, b: 2,\n  a: 3}\n", "2:3: x.a: duplicate key, first on line 1"),
        ("a: &x 1\n", "1:4: a: anchors are not allowed; remove &x"),
        ("a: *x\n", "1:4: a: aliases are not allowed; write out what *x stands for"),
        ("a: !!int 1\n", "1:4: a: tags are not allowed; remove '!!int'"),
        ("a: !mine [1]\n", "1:4: a: tags are not allowed; remove '!mine'"),
        ("!!python/object:os.system {}\n", "1:1: tags are not allowed; remove '!!python/object:os.system'"),
        ("a:\n  <<: {b: 1}\n", "2:3: a: merge keys (<<) are not allowed; write the keys out"),
        ("a: {null: 2}\n", "1:5: a: a key must be text; write 'null' in quotes"),
        ("? [a, b]\n: 1\n", "1:3: a key must be text"),
        ("&x a: 1\n", "1:1: a: anchors are not allowed; remove &x"),
        ("*x : 1\n", "1:1: a key must be text"),
        (".inf: 1\n", "1:1: .inf: must be a finite number, not .inf"),
        ("a: [1, .nan]\n", "1:8: a[1]: must be a finite number, not .nan"),
        ("-1e400", "1:1: is a number too large for a 64-bit float"),
        ("9223372036854775808", "1:1: is a whole number beyond 64 bits"),
        ('a: "\\0"\n', "1:4: a: holds the control character U+0000"),
        ('a: "\\ud800"\n', "1:4: a: holds the control character U+D800"),
        ("a: b: c\n", f"1:5: {INVALID}: mapping values are not allowed here"),
        ("a: 'b\n", f"2:1: {INVALID}: while scanning a quoted scalar, found unexpected end of stream"),
        (
            "%YAML 3.0\n---\na: 1\n",
            "1:1: is not valid YAML: found incompatible YAML document (version 1.* is required)",
        ),
        ("[" + "a," * MAX_EVENTS + "]", f"1:39996: holds more than {MAX_EVENTS} keys and values"),
        (b"a: 1\nb: \xff\n", "2:4: is not UTF-8 (byte 0xff)"),
        (b"\xff\xfea\x00", "1:1: is not UTF-8 (byte 0xff)"),
        (b"a:\n\t- 1\n", "2:1: holds a tab; use spaces"),
        (b"a: \x1b[31m\n", "1:4: holds the control character U+001B"),
        ("a: \u2028\n", "1:4: holds the control character U+2028"),
        ("a: \x85\n", "1:4: holds the control character U+0085"),
        ('a: "\\UFFFFFFFF"', OUT_OF_RANGE),
        ("%YAML 1." + "9" * 6000 + "\n---\na: 1", OUT_OF_RANGE),
        ("[" * (MAX_DEPTH + 2), f"1:{MAX_DEPTH + 2}: is nested deeper than {MAX_DEPTH} levels"),
    ],
)
def test_a_mistake_has_its_place(text, line):
    assert reported(text) == [line]


def test_all_mistakes_are_reported_and_one_does_not_hide_the_next():
    assert reported("a: &x 1\na: *x\nb: {c: .nan, c: !!str 2}\n1: {d: 1, d: 2}\n") == [
        "1:4: a: anchors are not allowed; remove &x",
        "2:1: a: duplicate key, first on line 1",
        "2:4: a: aliases are not allowed; write out what *x stands for",
        "3:8: b.c: must be a finite number, not .nan",
        "3:14: b.c: duplicate key, first on line 3",
        "3:17: b.c: tags are not allowed; remove '!!str'",
        "4:1: a key must be text; write '1' in quotes",
        "4:11: 1.d: duplicate key, first on line 4",
    ]


def test_mistakes_that_are_added_have_places_unless_they_follow_from_an_unreadable_value():
    document = parse_document(b"a: {b: .inf}\n", "f")
    document.add(ValidationIssue(("a", "b"), "must be text, not null"))
    document.add(ValidationIssue(("a", "b", "c"), "is missing", "missing"))
    document.add(ValidationIssue(("a",), "is too small"))
    assert document.lines() == ["f:1:4: a: is too small", "f:1:8: a.b: must be a finite number, not .inf"]
    document = parse_document(b"a:\n  b: {c: x}\nd: x\n", "f")
    for loc in (("a", "b", "z"), ("d", "z"), ("z",)):
        document.add(ValidationIssue(loc, "is missing", "missing"))
    assert document.lines() == ["f:1:1: z: is missing", "f:2:3: a.b.z: is missing", "f:3:4: d.z: is missing"]


@pytest.mark.parametrize(
    ("words", "value"),
    {
        "~ null Null NULL": None,
        "true TRUE": True,
        "False false": False,
        "0 -0": 0,
        "+12": 12,
        "9223372036854775807": 2**63 - 1,
        "010": 10,
        "0o10": 8,
        "0xFf": 255,
        "-7": -7,
        "1e3 1e+3": 1000.0,
        "1.0e-3": 0.001,
        "1.": 1.0,
        ".5": 0.5,
        "-1.5E+2": -150.0,
        "0.0 -0.0 1e-999": 0.0,
    }.items(),
)
def test_plain_values_are_read_as_yaml_1_2_reads_them(words, value):
    assert {repr(plain_value(word)) for word in words.split()} == {repr(value)}


# In YAML 1.1 the first ones are more than text.
WORDS = "yes no on off y N tRUE nULL 1:30 190:20:30 1_000 0b1 0o8 0xg 2001-01-01 . + 1e e3 1.2.3 +0o7 \u0661 = +.nan"


@pytest.mark.parametrize("text", WORDS.split())
def test_plain_text_is_read_as_text(text):
    assert plain_value(text) == text
