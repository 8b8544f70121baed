"""Judges how many examples of each class the domains of the user's data have, for what a first suite says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

Counts: TypeAlias = Mapping[str, Mapping[str, int]]
"""Examples by class, by domain."""
_FEW = 20
"""Of fewer labelled examples of a domain, of which half are tested, the tests are too small to compare methods by."""
_SHIFT = 0.2
"""Shares of a class that differ by more between domains call for the mean over classes."""
_RARE = 0.1
"""So does a class with a smaller share of any domain; of many classes, one with less than half of an even share."""
_MOST = 6


def few_examples(counts: Counts) -> Iterator[str]:
    """A line on the domains with too few labelled examples to test methods on, if there are any."""
    sizes = {name: sum(of.values()) for name, of in counts.items()}
    few = {name: size for name, size in sizes.items() if size < _FEW}
    if not few:
        return
    low, high = min(few.values()), max(few.values())
    rows = f"{high} rows" if low == high else f"{low} to {high} rows"
    which = f"{len(few)} of {len(sizes)} domains {'has' if len(few) == 1 else 'have'} {rows} ({_some([*few])})"
    if len(few) == len(sizes):
        yield f"few rows: {which}, too few to compare methods by"
        return
    remedy = f"to train no models for {'it' if len(few) == 1 else 'them'}, list the others in `targets`"
    yield f"few rows: {which}: good as sources, but scores there do not count in the average; {remedy}"


def why_balanced(counts: Counts) -> str | None:
    """Why accuracy would mislead, so that the mean over classes is to be compared; None if it would not."""
    classes = list(dict.fromkeys(name for of in counts.values() for name in of))
    shares = {
        (name, domain): of.get(name, 0) / sum(of.values())
        for domain, of in counts.items()
        if any(of.values())
        for name in classes
    }
    for name in classes:
        of_class = [share for (other, _), share in shares.items() if other == name]
        if max(of_class) - min(of_class) > _SHIFT:
            return "the shares of classes differ between domains"
    (rarest, domain), least = min(shares.items(), key=lambda item: item[1])
    if least < min(_RARE, 0.5 / len(classes)):
        return f"class {rarest!r} is {100 * least:.2g} % of domain {domain!r}, which accuracy hardly counts"
    return None


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST])
    return shown if len(names) <= _MOST else f"{shown} and {len(names) - _MOST} more"
