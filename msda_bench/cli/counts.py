"""Prints how many examples of each class domains have, in a table that stays readable with many of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msda_bench.cli.lines import say_table

_MOST_COLUMNS = 12
_MOST_ROWS = 40


def say_counts(counts: Mapping[str, Mapping[str, int]]) -> None:
    """A column for each domain; of many domains a row for each of the first ones, and one for all others."""
    classes = sorted({name for of in counts.values() for name in of})
    whole = ("all", _sum(counts.values(), classes))
    if len(counts) <= _MOST_COLUMNS:
        rows = [(name, *(str(of.get(name, 0)) for of in counts.values())) for name in classes]
        say_table(("class",), [*rows, ("all", *(str(sum(of.values())) for of in counts.values()))], numbers=counts)
        return
    domains = [*counts.items()]
    others = [of for _, of in domains[_MOST_ROWS:]]
    rest = [(f"({len(others)} others)", _sum(others, classes))] if others else []
    shown = [*domains[:_MOST_ROWS], *rest, whole]
    if len(classes) < _MOST_COLUMNS:
        table = [(name, *(of.get(label, 0) for label in classes), sum(of.values())) for name, of in shown]
        heads = [*classes, "all"]
    else:
        table = [(name, sum(map(bool, of.values())), sum(of.values())) for name, of in shown]
        heads = ["classes", "examples"]
    say_table(("domain",), [tuple(map(str, row)) for row in table], numbers=heads)


def _sum(counts: Iterable[Mapping[str, int]], classes: Iterable[str]) -> dict[str, int]:
    every = [*counts]
    return {name: sum(of.get(name, 0) for of in every) for name in classes}
