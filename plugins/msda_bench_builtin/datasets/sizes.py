"""Domains with few examples and rare classes in a user's data, and the settings of a first suite that follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

Counts: TypeAlias = Mapping[str, Mapping[str, int]]
"""Examples by class, by domain."""
_FEW = 20
"""A domain with fewer labelled examples, half of them for the test, is too small a test to compare methods by."""
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


class Imbalance(NamedTuple):
    """Why accuracy would mislead, so that the mean over classes is to be compared.

    Attributes:
        why: in words.
        rare: the name and number of the rarest class of a domain that has it, if it is rare there.
    """

    why: str
    rare: tuple[str, int] | None = None

    @classmethod
    def of(cls, counts: Counts, classes: Sequence[str]) -> Imbalance | None:
        """What the examples of each domain show; None if accuracy does not mislead. `classes` are in their order."""
        used = [name for name in classes if any(by_class.get(name) for by_class in counts.values())]
        shares: dict[tuple[str, str], float] = {}
        for domain, by_class in counts.items():
            examples = sum(by_class.values())
            if examples:
                shares |= {(name, domain): by_class.get(name, 0) / examples for name in used}
        if not shares:
            return None
        few = min(_RARE, 0.5 / len(used))
        # A class that a domain does not have has no score there.
        scored = {place: share for place, share in shares.items() if share}
        name, _ = min(scored, key=scored.__getitem__)
        rare = (name, classes.index(name)) if min(scored.values()) < few else None
        for name in used:
            of_class = [share for (other, _), share in shares.items() if other == name]
            if max(of_class) - min(of_class) > _SHIFT:
                return cls("the shares of classes differ between domains", rare)
        rarest, domain = min(shares, key=shares.__getitem__)
        least = shares[rarest, domain]
        if least >= few:
            return None
        return cls(f"class {rarest!r} is {100 * least:.2g} % of domain {domain!r}, which accuracy hardly counts", rare)

    @property
    def line(self) -> str:
        """What the suite does because of it, in a line."""
        text = f"{self.why}, so the suite compares `balanced_accuracy`"
        if self.rare is None:
            return text
        name, number = self.rare
        how = f"msda-bench leaderboard results/NAME --metric 'auprc(positive={number})'"
        return f"{text}; of class {name!r} alone `{how}` tells more"

    @property
    def settings(self) -> dict[str, tuple[Any, str]]:
        """The settings of the suite, with comments."""
        settings: dict[str, tuple[Any, str]] = {
            "metric": ("balanced_accuracy", "the mean over classes, so that each counts alike")
        }
        if self.rare is not None:
            name, number = self.rare
            shown = name if name.isprintable() else ascii(name)
            why = f"for --metric 'auprc(positive={number})' or auroc: of class {shown}"
            settings["keep"] = (["predictions"], why)
        return settings


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_MOST])
    return shown if len(names) <= _MOST else f"{shown} and {len(names) - _MOST} more"
