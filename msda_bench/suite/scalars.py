"""What an unquoted word of YAML 1.2 stands for (core schema, section 10.3.2 of the YAML specification)."""

from __future__ import annotations

import math
import re

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_WHOLE = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LONGEST = 40
_LARGEST = 2**63 - 1


def resolve(text: str) -> str | float | bool | None:
    """The value of a plain scalar: `yes`, `on` and `1:30` are text, `1e3` is a float, `010` is ten.

    Raises:
        ValueError: it is a number that is not finite or too large; the message says so in plain words.
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
    # Python reads thousands of digits slowly, and refuses to above a limit.
    number = int(text[2:] if base != 10 else text, base) if len(text) <= _LONGEST else _LARGEST + 1  # noqa: PLR2004
    if abs(number) > _LARGEST:
        raise ValueError("is a whole number beyond 64 bits")
    return number


def _real(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("is a number too large for a 64-bit float")
    return number + 0.0  # -0.0 becomes 0.0, so that both give the same key
