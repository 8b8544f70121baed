"""Two result folders beside each other as they are printed, the verdict last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table

from msda_bench.report.figures_text import Unit, show_p
from msda_bench.report.problems import problems_of
from msda_bench.report.screen import Screen
from msda_bench.report.sides import Only, Pairing, Sides
from msda_bench.report.sides_verdict import sides_verdict, unit_of
from msda_bench.report.words import spans
from msda_bench.stats.difference import Difference
from msda_bench.stats.scores import AVERAGE
from msda_bench.suite.plan import Experiment

_METHOD_WIDTH = 22
_FULL_WIDTH = 98
_HEADS = ("A", "B", "shift", "interval", "p", "Holm ", "W/T/L", "n")
_EXPLANATION = (
    "A, B: means over the pairs, a pair being a seed that is ok in both; average: over the targets that both have. "
    "shift: Hodges-Lehmann estimate of the differences, positive where B is better; interval: its own, level 1 - "
    "alpha, left out where the console is narrow; p: exact two-sided Wilcoxon signed-rank test; Holm: corrected over "
    "the methods of the same block; W/T/L: pairs won, tied, lost by B; n: pairs at hand / planned by both. *: p after "
    "Holm at most alpha, where so many pairs can tell."
)
_GOOD = {"same", "better", "not_told_apart"}


def print_sides(console: Console, sides: Sides, *, explain: bool = True) -> None:
    """Prints two folders beside each other.

    Args:
        console: where to.
        sides: the folders.
        explain: whether to say how the tables are to be read.
    """
    screen = Screen.of(console)
    for side, folder in (("A", sides.a), ("B", sides.b)):
        screen.line(f"{side}: {folder.path} (suite {folder.plan.suite})")
    for pairing in sides.pairings:
        screen.line("")
        _print_pairing(screen, pairing)
    screen.line("")
    if explain and sides.pairings:
        screen.paragraph(_EXPLANATION, "dim")
    for side, tables in (("A", sides.only_a), ("B", sides.only_b)):
        for table in tables:
            screen.line(f"only in {side}: {table.name} ({table.dataset}), a whole experiment", "yellow")
    verdict = sides_verdict(sides)
    screen.line(f"verdict: {verdict.line}", "bold green" if verdict.status in _GOOD else "bold red")


def _print_pairing(screen: Screen, pairing: Pairing) -> None:
    unit, alpha = unit_of(pairing), pairing.a.experiment.alpha
    screen.line(f"{title(pairing)}: A beside B, {unit.label}, alpha {alpha:g}")
    screen.line("")
    if pairing.differences:
        screen.table(_table(screen, unit, _shown(pairing)))
    else:
        screen.line("no method and target in common")
    screen.line("")
    for line in only_lines(pairing):
        screen.line(line, "yellow")
    for change in pairing.changes:
        screen.line(f"differs: {change}", "yellow")
    screen.line(_same(pairing))
    for line in _notes(pairing.a.experiment, pairing.b.experiment):
        screen.line(f"note: {line}", "yellow")
    for side, scores in (("A", pairing.a), ("B", pairing.b)):
        for problem in problems_of(scores):
            screen.line(f"problem: {side}: {problem}", "red")


def title(pairing: Pairing) -> str:
    """The experiment's name and dataset, or both names where they differ."""
    a, b = pairing.a.experiment, pairing.b.experiment
    return f"{a.name if a.name == b.name else f'{a.name}, in B {b.name}'} ({a.dataset})"


def only_lines(pairing: Pairing) -> Iterator[str]:
    """What only one side has, and where the sides ask for another level."""
    for side, only in (("A", pairing.only_a), ("B", pairing.only_b)):
        if told := "; ".join(_only(only)):
            yield f"only in {side}: {told}"
    one, other = pairing.a.experiment.alpha, pairing.b.experiment.alpha
    if one != other:
        yield f"differs: alpha: A {one:g}, B {other:g}; that of A counts here"


def _only(only: Only) -> Iterator[str]:
    for what, names in (("method", only.methods), ("target", only.targets)):
        if names:
            yield f"{what}{'s' if len(names) > 1 else ''} {', '.join(names)}"
    if only.seeds:
        yield f"seed{'s' if len(only.seeds) > 1 else ''} {spans(only.seeds)}"


def _same(pairing: Pairing) -> str:
    runs = f"{pairing.n_paired} of {pairing.n_runs} runs that both plan are ok in both"
    if not pairing.n_same_cell:
        return f"same: {runs}, none of the same cell"
    return f"same: {runs}, {pairing.n_same_cell} of the same cell, {pairing.n_same_result} with an equal result"


def _notes(a: Experiment, b: Experiment) -> Iterator[str]:
    """The notes of both once, the others with their side."""
    yield from (note for note in a.notes if note in b.notes)
    yield from (f"A: {note}" for note in a.notes if note not in b.notes)
    yield from (f"B: {note}" for note in b.notes if note not in a.notes)


def _shown(pairing: Pairing) -> list[Difference]:
    """There is no need of a mean over a single target."""
    several = len({one.target for one in pairing.differences if one.target is not None}) > 1
    return [one for one in pairing.differences if several or one.target is not None]


def _table(screen: Screen, unit: Unit, differences: Sequence[Difference]) -> Table:
    heads = [head for head in _HEADS if head != "interval" or screen.width >= _FULL_WIDTH]
    table = screen.new_table()
    table.add_column("method", max_width=_METHOD_WIDTH, overflow="fold")
    for head in heads:
        table.add_column(head, justify="right", overflow="fold")
    table.add_column("status", overflow="fold")
    for target, block in groupby(differences, key=lambda one: one.target):
        table.add_section()
        table.add_row(AVERAGE if target is None else target, style="bold" if screen.styled else "")
        for one in block:
            cells = _cells(unit, one)
            name = one.method_a if one.method_a == one.method_b else f"{one.method_a} / {one.method_b}"
            table.add_row(name, *(cells.get(head, "") for head in heads), "" if one.status == "ok" else one.status)
    return table


def _cells(unit: Unit, one: Difference) -> dict[str, str]:
    """By head; nothing but the count where there are no pairs."""
    n = f"{one.n_paired}/{one.n_planned}"
    if one.effect is None or one.a.mean is None or one.b.mean is None:
        return {"n": n}
    low, high = one.effect.low, one.effect.high
    values = (
        unit.show(one.a.mean),
        unit.show(one.b.mean),
        unit.show_signed(one.effect.hodges_lehmann),
        "-" if low is None or high is None else f"{unit.show(low)} .. {unit.show(high)}",
        show_p(one.test.p),
        show_p(one.p_holm) + ("*" if one.significant else " "),
        f"{one.effect.wins}/{one.effect.ties}/{one.effect.losses}",
        n,
    )
    return dict(zip(_HEADS, values, strict=True))
