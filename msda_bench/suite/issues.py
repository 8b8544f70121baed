"""Issues that validation finds in a suite, including pydantic's, in plain words with their location."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from msda_bench.component.base import PLAIN_NAME

Loc: TypeAlias = tuple[str | int, ...]
"""The place of a value: keys of mappings and indices of lists, from the top."""
Where: TypeAlias = Literal["value", "key", "missing"]
PLAIN_WORDS = "1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit"
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LONGEST = 60
_MOST_KNOWN = 20
_TAG = "msda_bench_"
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
_MISSING = frozenset({"missing", "missing_keyword_only_argument", "missing_argument"})
_TYPES = {
    "string_type": "text",
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("int_type", "int_from_float", "int_parsing"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "finite_number": "a finite number",
    "none_required": "null",
    **dict.fromkeys(("list_type", "tuple_type", "set_type"), "a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type", "dataclass_type"), "a mapping"),
}
_BOUNDS = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_LENGTHS = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}


class ValidationIssue(NamedTuple):
    """A mistake below the validated value; `where` says whether its key or its value is wrong, or missing."""

    loc: Loc
    what: str
    where: Where = "value"


Issues: TypeAlias = Iterator[ValidationIssue]


def dotted(loc: Loc) -> str:
    """A location as text, such as `methods.DARN.mu` or `targets[2]`."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{shown_value(part)}]"
    return text


def shown_value(value: Any) -> str:
    """A value as written in a suite, on one line and shortened."""
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]}...{text[-1]}"


def hint(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or the known names if none is similar."""
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1)
    if close:
        return f" (did you mean {shown_value(close[0])}?)"
    listed = ", ".join(names[:_MOST_KNOWN]) + (", ..." if len(names) > _MOST_KNOWN else "")
    return f" (known: {listed})" if names else ""


def refusal(*issues: ValidationIssue) -> ValidationError:
    """An error to raise inside a pydantic validator; each issue keeps its location below the validated value."""
    details = []
    for issue in issues:
        tag: Any = f"{_TAG}{issue.where}"  # the type accepts only literal strings
        kind = PydanticCustomError(tag, "{what}", {"what": issue.what})
        details.append(InitErrorDetails(type=kind, loc=issue.loc, input=None))
    return ValidationError.from_exception_data("suite", details)


def refused(what: str, loc: Loc = (), where: Where = "value") -> ValidationError:
    """The refusal of the validated value, or of a part of it, for one reason."""
    return refusal(ValidationIssue(loc, what, where))


def refuse_any(issues: Iterable[ValidationIssue]) -> None:
    """Raises the refusal of the issues, if there are any."""
    found = tuple(issues)
    if found:
        raise refusal(*found)


def issues_of(error: ValidationError, noun: str = "key", known: Iterable[str] = ()) -> Iterator[ValidationIssue]:
    """Every issue of a validation, in plain words; the noun and the names are those of the keys at the top."""
    for detail in error.errors(include_url=False):
        kind = detail["type"]
        loc: Loc = tuple(part for part in detail["loc"] if part != "[key]")
        if kind in _UNKNOWN:
            yield ValidationIssue(loc, f"unknown {noun}{hint(str(loc[-1]), known)}", "key")
        elif kind == f"{_TAG}key" or detail["loc"][-1:] == ("[key]",):
            yield ValidationIssue(loc, explain(detail), "key")
        elif kind == f"{_TAG}missing" or kind in _MISSING:
            yield ValidationIssue(loc, explain(detail), "missing")
        else:
            yield ValidationIssue(loc, explain(detail))


def explain(detail: ErrorDetails) -> str:
    """One of pydantic's errors in plain words that follow the path of the value."""
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in _TYPES:
        quotes = " (put it in quotes)" if kind == "string_type" and isinstance(value, int | float) else ""
        return f"must be {_TYPES[kind]}, not {shown_value(value)}{quotes}"
    if kind in _BOUNDS:
        relation, key = _BOUNDS[kind]
        return f"must be {relation} {context[key]:.10g}, not {shown_value(value)}"
    if kind in _LENGTHS:
        relation, key = _LENGTHS[kind]
        return f"must have {relation} {context[key]} item{'s' if context[key] != 1 else ''}, not {len(value)}"
    if kind in _MISSING:
        return "is missing"
    return _explain_text(kind, value, context) or " ".join(detail["msg"].split())


def _explain_text(kind: str, value: Any, context: dict[str, Any]) -> str | None:
    if kind == "literal_error":
        close = hint(value, context["expected"].split("'")[1::2]) if isinstance(value, str) else ""
        return f"must be {context['expected']}, not {shown_value(value)}{close if 'did you mean' in close else ''}"
    if kind == "string_pattern_mismatch":
        wanted = f"be {PLAIN_WORDS}" if context["pattern"] == PLAIN_NAME else f"match {context['pattern']}"
        return f"must {wanted}, not {shown_value(value)}"
    if kind in {"value_error", "assertion_error"}:
        return " ".join(str(context["error"]).split()) or "is refused"
    return None
