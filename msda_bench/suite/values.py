"""Values that a suite may write in several forms: seeds, domains and the size of a batch."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema

from msda_bench.suite.mistakes import Fault, refusal, refuse_any, shown

MAX_SEED = 2**31 - 1
MAX_COUNT = 10_000
_SPAN = re.compile(r"([0-9]{1,10})-([0-9]{1,10})")


def span(text: str) -> range | None:
    """The whole numbers of `3-7`, both ends included; None for other text or if the end comes first."""
    match = _SPAN.fullmatch(text)
    if not match:
        return None
    first, last = int(match[1]), int(match[2])
    return range(first, last + 1) if first <= last else None


def meant_span(text: str) -> str | None:
    """The number or span that text such as `0..4` or `4-0` probably means; None with no number or more than two."""
    numbers = sorted(map(int, re.findall(r"[0-9]{1,10}", text)))
    return "-".join(map(str, numbers)) if len(numbers) in {1, 2} else None


def seeds(raw: Any) -> tuple[int, ...]:
    """A count n (0 to n - 1), a list of numbers, or a span such as "0-4"; refuses anything else."""
    if isinstance(raw, list):
        if not raw:
            raise refusal(Fault((), "must have at least one seed"))
        return _each_once(raw, _is_seed, "must be a whole number from 0 to 2**31 - 1", "seed ")
    numbers = span(raw) if isinstance(raw, str) else None
    if type(raw) is int:
        if raw < 1:
            raise refusal(Fault((), f"must be a count of at least 1, not {raw}; for one seed write [{max(raw, 0)}]"))
        numbers = range(raw)
    if numbers is None:
        meant = meant_span(raw) if isinstance(raw, str) else None
        close = f" (did you mean {shown(meant)}?)" if meant else ""
        what = f"must be a count, a list such as [0, 3] or a span such as '0-4', not {shown(raw)}{close}"
        raise refusal(Fault((), what))
    if len(numbers) > MAX_COUNT or numbers[-1] > MAX_SEED:
        raise refusal(Fault((), f"must be at most {MAX_COUNT} seeds below 2**31, not {shown(raw)}"))
    return tuple(numbers)


def _is_seed(raw: Any) -> bool:
    return type(raw) is int and 0 <= raw <= MAX_SEED


def _domains(raw: Any) -> tuple[str, ...] | None:
    if raw == "all":
        return None
    if not isinstance(raw, list) or not raw:
        raise refusal(Fault((), f"must be 'all' or a list of at least one domain, not {shown(raw)}"))
    return _each_once(raw, lambda item: isinstance(item, str), "must be the name of a domain")


def _each_once(raw: list[Any], usable: Callable[[Any], bool], wanted: str, noun: str = "") -> tuple[Any, ...]:
    """The items as a tuple; refuses unusable and repeated ones."""
    sound: set[Any] = set()
    found: list[Fault] = []
    for index, item in enumerate(raw):
        if not usable(item):
            found.append(Fault((index,), f"{wanted}, not {shown(item)}"))
        elif item in sound:
            found.append(Fault((index,), f"{noun}{shown(item)} is named twice"))
        else:
            sound.add(item)
    refuse_any(found)
    return tuple(raw)


def _batch(raw: Any) -> int | Literal["all"]:
    if raw == "all":
        return "all"
    if type(raw) is int and raw >= 1:
        return raw
    raise refusal(Fault((), f"must be at least 1, or 'all', not {shown(raw)}"))


def _list_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1, "uniqueItems": True}


_COUNT = {"type": "integer", "minimum": 1}
_SEEDS = [
    _COUNT | {"maximum": MAX_COUNT},
    _list_of({"type": "integer", "minimum": 0}),
    {"type": "string", "pattern": "^[0-9]+-[0-9]+$"},
]
_DOMAINS = [{"const": "all"}, _list_of({"type": "string"})]
Seeds = Annotated[tuple[int, ...], PlainValidator(seeds), WithJsonSchema({"anyOf": _SEEDS})]
Domains = Annotated[tuple[str, ...] | None, PlainValidator(_domains), WithJsonSchema({"anyOf": _DOMAINS})]
BatchSize = Annotated[
    int | Literal["all"], PlainValidator(_batch), WithJsonSchema({"anyOf": [_COUNT, {"const": "all"}]})
]
