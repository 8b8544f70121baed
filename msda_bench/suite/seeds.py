"""Seeds, as a suite and the command line write them."""

from __future__ import annotations

import re
from typing import Any

from msda_bench.suite.faults import Fault, refusal
from msda_bench.suite.mistakes import shown

MAX_SEED = 2**31 - 1
MAX_COUNT = 10_000
_SPAN = re.compile(r"([0-9]{1,10})-([0-9]{1,10})")


def span(text: str) -> range | None:
    """The whole numbers of `3-7`, both ends included; None for text of another form or with its end first."""
    match = _SPAN.fullmatch(text)
    if not match:
        return None
    first, last = int(match[1]), int(match[2])
    return range(first, last + 1) if first <= last else None


def meant_span(text: str) -> str | None:
    """The number or span that may be meant by text such as `0..4` or `4-0`; None where no number or more are in it."""
    numbers = sorted(map(int, re.findall(r"[0-9]{1,10}", text)))
    return "-".join(map(str, numbers)) if len(numbers) in {1, 2} else None


def seeds(raw: Any) -> tuple[int, ...]:
    """A count n (0 to n - 1), a list of numbers, or a span such as "0-4".

    Raises:
        pydantic.ValidationError: it is none of these, a number is out of range or named twice.
    """
    if isinstance(raw, list):
        return _listed(raw)
    numbers: range | None = None
    if isinstance(raw, str):
        numbers = span(raw)
    elif isinstance(raw, int) and not isinstance(raw, bool):
        if raw < 1:
            raise refusal([Fault((), f"must be a count of at least 1, not {raw}; for one seed write [{max(raw, 0)}]")])
        numbers = range(raw)
    if numbers is None:
        meant = meant_span(raw) if isinstance(raw, str) else None
        close = f" (did you mean {shown(meant)}?)" if meant else ""
        what = f"must be a count, a list such as [0, 3] or a span such as '0-4', not {shown(raw)}{close}"
        raise refusal([Fault((), what)])
    if len(numbers) > MAX_COUNT or numbers[-1] > MAX_SEED:
        raise refusal([Fault((), f"must be at most {MAX_COUNT} seeds below 2**31, not {shown(raw)}")])
    return tuple(numbers)


def _listed(raw: list[Any]) -> tuple[int, ...]:
    found: list[Fault] = []
    named: set[int] = set()
    for index, seed in enumerate(raw):
        if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed <= MAX_SEED:
            found.append(Fault((index,), f"must be a whole number from 0 to 2**31 - 1, not {shown(seed)}"))
        elif seed in named:
            found.append(Fault((index,), f"seed {seed} is named twice"))
        else:
            named.add(seed)
    if not raw:
        found.append(Fault((), "must have at least one seed"))
    if found:
        raise refusal(found)
    return tuple(raw)
