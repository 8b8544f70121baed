"""Reads YAML 1.2 strictly: no duplicate keys, anchors, aliases, tags, merge keys or numbers that are not finite.

The plain values keep the place of every key and value. Built on PyYAML's events rather than its loader, which
implements YAML 1.1, resolves aliases, keeps the last of two equal keys and recurses without limit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem, itemgetter
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped, unused-ignore]

from msda_bench.suite.issues import Loc, ValidationIssue, dotted, shown_value

MAX_DEPTH = 40
MAX_EVENTS = 20_000
# Characters that YAML does not allow, and tabs and the line breaks that only YAML 1.1 knows.
UNWANTED = re.compile("[^\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# The core schema (YAML 1.2, section 10.3.2).
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_WHOLE = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LONGEST_NUMBER = 40
_LARGEST = 2**63 - 1
_LONGEST_LINE = 1000


class Mark(NamedTuple):
    """A place in a file; both numbers start at 1."""

    line: int
    column: int


TOP = Mark(1, 1)


@dataclass
class Document:
    """One parsed file: its value, the places of each key and its value, and the issues so far with their places.

    The values at `unread` locations could not be read and are None.
    """

    name: str
    value: Any = None
    places: dict[Loc, tuple[Mark, Mark]] = field(default_factory=dict)
    unread: set[Loc] = field(default_factory=set)
    issues: list[tuple[Mark, str]] = field(default_factory=list)

    def add(self, fault: ValidationIssue) -> None:
        """Adds a mistake, unless it only follows from a value that could not be read."""
        known = fault.loc
        while known and known not in self.places:
            known = known[:-1]
        loc = known if fault.where == "value" else fault.loc
        if any(loc[:length] in self.unread for length in range(len(loc) + 1)):
            return
        # A missing value is reported at the mapping's own key.
        missing = known != loc and isinstance(reduce(getitem, known, self.value), dict | list)
        at_key = missing or (fault.where == "key" and known == loc)
        key, value = self.places.get(known, (TOP, TOP))
        self.report(key if at_key else value, fault.what, loc)

    def report(self, mark: Mark, what: str, loc: Loc = ()) -> None:
        """Adds `file:line:column: dotted.path: what`, without the path for the file as a whole."""
        text = f"{dotted(loc)}: {what}" if loc else what
        if len(text) > _LONGEST_LINE:
            text = f"{text[: _LONGEST_LINE // 2]} ... {text[-_LONGEST_LINE // 2 :]}"
        self.issues.append((mark, f"{self.name}:{mark.line}:{mark.column}: {text}"))

    def spoil(self, mark: Mark, what: str, loc: Loc = ()) -> None:
        """Adds a value that cannot be read, or the file as a whole."""
        self.report(mark, what, loc)
        self.unread.add(loc)

    def lines(self) -> list[str]:
        """The lines of the issues in the order of the file, each once."""
        return list(dict.fromkeys(line for _, line in sorted(self.issues, key=itemgetter(0))))


def parse_document(data: bytes, name: str) -> Document:
    """Parses a file's bytes; the document holds all issues."""
    document = Document(name)
    try:
        document.value = _Reader(document, _decode(data)).read()
    except _UnusableError as stop:
        document.spoil(*stop.args)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = ", ".join(" ".join(part.split()) for part in (error.context, error.problem) if part)
        document.spoil(_mark(mark) if mark else TOP, f"is not valid YAML: {reason}")
    except (yaml.YAMLError, ValueError, OverflowError):  # chr() and int() may fail in PyYAML
        document.spoil(TOP, "is not valid YAML: an escape such as \\U0010FFFF, or a directive, is out of range")
    return document


def plain_value(text: str) -> str | float | bool | None:
    """The value of a plain scalar: `yes`, `on` and `1:30` are text, `1e3` is a float, `010` is ten.

    Raises a ValueError with a plain message for a number that is not finite or too large.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        base = 0 if text[:2] in {"0o", "0x"} else 10
        # Python parses thousands of digits slowly, and refuses more.
        if len(text) > _LONGEST_NUMBER or abs(int(text, base)) > _LARGEST:
            raise ValueError("is a whole number beyond 64 bits")
        return int(text, base)
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"must be a finite number, not {text}")
    if not _REAL.fullmatch(text):
        return text
    if not math.isfinite(real := float(text)):
        raise ValueError("is a number too large for a 64-bit float")
    return real + 0.0  # -0.0 becomes 0.0, so that both give the same key


def _checked(text: str) -> str:
    if unwanted := UNWANTED.search(text.replace("\t", " ")):
        raise ValueError(f"holds the control character U+{ord(unwanted.group()):04X}")
    return text


class _UnusableError(Exception):
    """A place, and the reason why the file cannot be read."""


def _mark(mark: Any) -> Mark:
    return Mark(mark.line + 1, mark.column + 1)


def _decode(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        raise _UnusableError(_end(before), f"is not UTF-8 (byte 0x{data[error.start]:02x})") from None
    if unwanted := UNWANTED.search(text):
        character = unwanted.group()
        what = "a tab; use spaces" if character == "\t" else f"the control character U+{ord(character):04X}"
        raise _UnusableError(_end(text[: unwanted.start()]), f"holds {what}")
    return text


def _end(text: str) -> Mark:
    return Mark(text.count("\n") + 1, len(text) - text.rfind("\n"))


class _Reader:
    def __init__(self, document: Document, text: str) -> None:
        self._document = document
        self._events = enumerate(yaml.parse(text, Loader=yaml.SafeLoader), 1)

    def read(self) -> Any:
        self._next()  # the stream's start
        if isinstance(self._next(), yaml.StreamEndEvent):
            raise _UnusableError(TOP, "is empty")
        value = self._node(self._next(), ())
        self._next()  # the document's end
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise _UnusableError(_mark(event.start_mark), "holds a second document; a suite is one")
        return value

    def _next(self) -> Any:
        number, event = next(self._events)
        if number > MAX_EVENTS:
            raise _UnusableError(_mark(event.start_mark), f"holds more than {MAX_EVENTS} keys and values")
        return event

    def _until(self, end: type[Any]) -> Iterator[Any]:
        while not isinstance(event := self._next(), end):
            yield event

    def _node(self, event: Any, loc: Loc, key: Mark | None = None) -> Any:
        mark = _mark(event.start_mark)
        if len(loc) > MAX_DEPTH:
            raise _UnusableError(mark, f"is nested deeper than {MAX_DEPTH} levels")
        self._document.places.setdefault(loc, (key or mark, mark))
        self._check_plainness(event, loc)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, loc)
        if isinstance(event, yaml.SequenceStartEvent):
            items = enumerate(self._until(yaml.SequenceEndEvent))
            return [self._node(item, (*loc, index)) for index, item in items]
        return self._mapping(loc) if isinstance(event, yaml.MappingStartEvent) else None

    def _check_plainness(self, event: Any, loc: Loc) -> None:
        mark, tag = _mark(event.start_mark), getattr(event, "tag", None)
        if isinstance(event, yaml.AliasEvent):
            self._document.spoil(mark, f"aliases are not allowed; write out what *{event.anchor} stands for", loc)
        elif event.anchor is not None:
            self._document.report(mark, f"anchors are not allowed; remove &{event.anchor}", loc)
        if tag is not None:
            short = tag.replace("tag:yaml.org,2002:", "!!")
            self._document.spoil(mark, f"tags are not allowed; remove {short!r}", loc)

    def _scalar(self, event: yaml.ScalarEvent, loc: Loc) -> Any:
        try:
            return _checked(event.value) if event.style else plain_value(event.value)
        except ValueError as error:
            self._document.spoil(_mark(event.start_mark), str(error), loc)
            return None

    def _mapping(self, loc: Loc) -> dict[str, Any]:
        items: dict[str, Any] = {}
        for event in self._until(yaml.MappingEndEvent):
            mark, key = _mark(event.start_mark), self._key(event, loc)
            # The value of a refused key is read, too, to report its mistakes.
            here = (*loc, getattr(event, "value", "?") if key is None else key)
            if key in items:
                first, _ = self._document.places[here]
                self._document.report(mark, f"duplicate key, first on line {first.line}", here)
            value = self._node(self._next(), here, None if key is None else mark)
            if key is not None:
                items.setdefault(key, value)
        return items

    def _key(self, event: Any, loc: Loc) -> str | None:
        mark, what = _mark(event.start_mark), "a key must be text"
        if isinstance(event, yaml.ScalarEvent):
            here = (*loc, event.value)
            self._check_plainness(event, here)
            key = self._scalar(event, here)
            if not event.style and event.value == "<<":
                what = "merge keys (<<) are not allowed; write the keys out"
            elif isinstance(key, str):
                return key
            elif here in self._document.unread:
                return None
            else:
                what = f"{what}; write {shown_value(event.value)} in quotes"
        self._document.report(mark, what, loc)
        if isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            self._node(event, (*loc, "?"))
        return None
