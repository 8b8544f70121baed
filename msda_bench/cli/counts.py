"""Prints how many examples of each class domains have, in a table that stays readable with many of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msda_bench.cli.lines import say_table

_MOST_COLUMNS = 12
_MOST_ROWS = 40


def say_counts(counts: Mapping[str, Mapping[str, int]]) -> None:
    """A column for each domain; of many domains a row for each of the first ones, and one for all others."""
    classes = sorted({name for of_domain in counts.values() for name in of_domain})
    if len(counts) <= _MOST_COLUMNS:
        _say_domains_beside(counts, classes)
    else:
        _say_domains_below(counts, classes)


def _say_domains_beside(counts: Mapping[str, Mapping[str, int]], classes: Sequence[str]) -> None:
    domains = list(counts.values())
    rows = [(name, *(str(of_domain.get(name, 0)) for of_domain in domains)) for name in classes]
    rows.append(("all", *(str(sum(of_domain.values())) for of_domain in domains)))
    say_table(("class",), rows, numbers=counts)


def _say_domains_below(counts: Mapping[str, Mapping[str, int]], classes: Sequence[str]) -> None:
    shown = list(counts.items())[:_MOST_ROWS]
    others = list(counts.values())[_MOST_ROWS:]
    if others:
        shown.append((f"({len(others)} others)", _total(others)))
    shown.append(("all", _total(counts.values())))
    has_few_classes = len(classes) < _MOST_COLUMNS
    rows = []
    for name, of_domain in shown:
        if has_few_classes:
            numbers = [of_domain.get(label, 0) for label in classes]
        else:
            numbers = [sum(count > 0 for count in of_domain.values())]
        rows.append((name, *map(str, numbers), str(sum(of_domain.values()))))
    heads = [*classes, "all"] if has_few_classes else ["classes", "examples"]
    say_table(("domain",), rows, numbers=heads)


def _total(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for of_domain in counts:
        total.update(of_domain)
    return total
