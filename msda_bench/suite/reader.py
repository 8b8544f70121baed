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
from operator import getitem
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped, unused-ignore]

from msda_bench.suite.mistakes import Fault, Loc, dotted, shown

MAX_DEPTH = 40
MAX_EVENTS = 20_000
_CORE_TAG = "tag:yaml.org,2002:"
# Characters that YAML does not allow, and tabs and the line breaks that only YAML 1.1 knows.
_UNWANTED = re.compile("[^\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Words of the core schema (YAML 1.2, section 10.3.2).
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_WHOLE = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
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


class Mistake(NamedTuple):
    """One mistake at its place in the file."""

    mark: Mark
    loc: Loc
    what: str

    def line(self, file: str) -> str:
        """`file:line:column: dotted.path: what`, without the path for the file as a whole."""
        text = f"{dotted(self.loc)}: {self.what}" if self.loc else self.what
        if len(text) > _LONGEST_LINE:
            text = f"{text[: _LONGEST_LINE // 2]} ... {text[-_LONGEST_LINE // 2 :]}"
        return f"{file}:{self.mark.line}:{self.mark.column}: {text}"


@dataclass
class Document:
    """One parsed file: its value, the places of keys and values, and the mistakes found so far.

    The values in `spoiled`, which could not be read, are None.
    """

    name: str
    value: Any = None
    keys: dict[Loc, Mark] = field(default_factory=dict)
    values: dict[Loc, Mark] = field(default_factory=dict)
    spoiled: set[Loc] = field(default_factory=set)
    mistakes: list[Mistake] = field(default_factory=list)

    def add(self, fault: Fault) -> None:
        """Adds a mistake, unless it only follows from a value that could not be read."""
        known = self._known(fault.loc)
        loc = known if fault.where == "value" else fault.loc
        if any(loc[:length] in self.spoiled for length in range(len(loc) + 1)):
            return
        # A missing value is reported at the mapping's own key.
        missing = known != loc and isinstance(reduce(getitem, known, self.value), dict | list)
        places = self.keys if (fault.where == "key" and known == loc) or missing else self.values
        self.mistakes.append(Mistake(places.get(known) or self.values.get(known) or TOP, loc, fault.what))

    def spoil(self, mark: Mark, what: str, loc: Loc = ()) -> None:
        """Adds a value that cannot be read, or the file as a whole."""
        self.mistakes.append(Mistake(mark, loc, what))
        self.spoiled.add(loc)

    def lines(self) -> list[str]:
        """The mistakes in the order of the file, each once."""
        ordered = sorted(self.mistakes, key=lambda mistake: mistake.mark)
        return list(dict.fromkeys(mistake.line(self.name) for mistake in ordered))

    def _known(self, loc: Loc) -> Loc:
        """The longest part of a location that exists in the file."""
        while loc and loc not in self.values:
            loc = loc[:-1]
        return loc


def parse_document(data: bytes, name: str) -> Document:
    """Parses a file's bytes; the document holds all mistakes."""
    document = Document(name)
    try:
        text = _decode(data)
        document.value = _Builder(document, yaml.parse(text, Loader=yaml.SafeLoader)).build()
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
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _WHOLE.fullmatch(text) or _BASED.fullmatch(text):
        return _whole(text)
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"must be a finite number, not {text}")
    return _real(text) if _REAL.fullmatch(text) else text


def _whole(text: str) -> int:
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    # Python parses thousands of digits slowly, and refuses more.
    number = int(text[2:] if base != 10 else text, base) if len(text) <= _LONGEST_NUMBER else _LARGEST + 1  # noqa: PLR2004
    if abs(number) > _LARGEST:
        raise ValueError("is a whole number beyond 64 bits")
    return number


def _real(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("is a number too large for a 64-bit float")
    return number + 0.0  # -0.0 becomes 0.0, so that both give the same key


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
    unwanted = _UNWANTED.search(text)
    if unwanted:
        found = unwanted.group()
        what = "a tab; use spaces" if found == "\t" else f"the control character U+{ord(found):04X}"
        raise _UnusableError(_end(text[: unwanted.start()]), f"holds {what}")
    return text


def _end(text: str) -> Mark:
    return Mark(text.count("\n") + 1, len(text) - text.rfind("\n"))


class _Builder:
    def __init__(self, document: Document, events: Iterator[Any]) -> None:
        self._document = document
        self._events = events
        self._seen = 0

    def build(self) -> Any:
        self._next()  # the stream's start
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            raise _UnusableError(TOP, "is empty")
        value = self._node(self._next(), ())
        self._next()  # the document's end
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            raise _UnusableError(_mark(event.start_mark), "holds a second document; a suite is one")
        return value

    def _next(self) -> Any:
        event = next(self._events)
        self._seen += 1
        if self._seen > MAX_EVENTS:
            raise _UnusableError(_mark(event.start_mark), f"holds more than {MAX_EVENTS} keys and values")
        return event

    def _node(self, event: Any, loc: Loc) -> Any:
        if len(loc) > MAX_DEPTH:
            raise _UnusableError(_mark(event.start_mark), f"is nested deeper than {MAX_DEPTH} levels")
        self._document.values.setdefault(loc, _mark(event.start_mark))
        self._check_plainness(event, loc)
        if isinstance(event, yaml.AliasEvent):
            return None
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, loc)
        return self._sequence(loc) if isinstance(event, yaml.SequenceStartEvent) else self._mapping(loc)

    def _check_plainness(self, event: Any, loc: Loc) -> None:
        if isinstance(event, yaml.AliasEvent):
            self._spoil(event, loc, f"aliases are not allowed; write out what *{event.anchor} stands for")
        elif event.anchor is not None:
            self._add(event, loc, f"anchors are not allowed; remove &{event.anchor}")
        if getattr(event, "tag", None) is not None:
            self._spoil(event, loc, f"tags are not allowed; remove {event.tag.replace(_CORE_TAG, '!!')!r}")

    def _scalar(self, event: yaml.ScalarEvent, loc: Loc) -> Any:
        text: str = event.value
        unwanted = _UNWANTED.search(text.replace("\t", " "))
        if unwanted:
            self._spoil(event, loc, f"holds the control character U+{ord(unwanted.group()):04X}")
            return None
        try:
            return text if event.style else plain_value(text)
        except ValueError as error:
            self._spoil(event, loc, str(error))
            return None

    def _sequence(self, loc: Loc) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            items.append(self._node(event, (*loc, len(items))))
        return items

    def _mapping(self, loc: Loc) -> dict[str, Any]:
        items: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event, loc)
            # The value of a refused key is read, too, to report its mistakes.
            here = (*loc, getattr(event, "value", "?") if key is None else key)
            refused = key is None or key in items
            if not refused:
                self._document.keys[here] = _mark(event.start_mark)
            elif key is not None:
                self._add(event, here, f"duplicate key, first on line {self._document.keys[here].line}")
            value = self._node(self._next(), here)
            if key is not None and not refused:
                items[key] = value
        return items

    def _key(self, event: Any, loc: Loc) -> str | None:
        if not isinstance(event, yaml.ScalarEvent):
            self._add(event, loc, "a key must be text")
            if not isinstance(event, yaml.AliasEvent):
                self._node(event, (*loc, "?"))
            return None
        self._check_plainness(event, (*loc, event.value))
        if not event.style and event.value == "<<":
            self._add(event, loc, "merge keys (<<) are not allowed; write the keys out")
            return None
        key = self._scalar(event, (*loc, event.value))
        if isinstance(key, str):
            return key
        if (*loc, event.value) not in self._document.spoiled:
            self._add(event, loc, f"a key must be text; write {shown(event.value)} in quotes")
        return None

    def _add(self, event: Any, loc: Loc, what: str) -> None:
        self._document.mistakes.append(Mistake(_mark(event.start_mark), loc, what))

    def _spoil(self, event: Any, loc: Loc, what: str) -> None:
        self._document.spoil(_mark(event.start_mark), what, loc)
