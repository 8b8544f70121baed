from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from msda_bench.report.experiments import print_all_remarks
from msda_bench.report.screen import Screen
from msda_bench.stats.scores import Scores
from msda_bench.suite.plan import Experiment, Method


def scores(name: str, *notes: str, status: str = "ok") -> Scores:
    table = Experiment(name, "toy", "classification", ("x",), (Method("A", False, "", ()),), (0,), notes=notes)
    return Scores(table, {}, {("A", "x", 0): status}, {})


def remarks(printed: Callable[..., str], *tables: Scores) -> tuple[list[str], bool]:
    found: list[bool] = []

    def show(console: Console) -> None:
        found.append(print_all_remarks(Screen.of(console), tables))

    return printed(show).splitlines(), found[0]


def test_a_note_that_all_experiments_have_is_said_once(printed: Callable[..., str]) -> None:
    assert remarks(printed, scores("one", "same"), scores("two", "same")) == (["note: same"], False)


def test_a_note_that_not_all_have_tells_whose_it_is(printed: Callable[..., str]) -> None:
    lines, _ = remarks(printed, scores("one", "both", "own"), scores("two", "both"), scores("three"))
    assert lines == ["note: one, two: both", "note: one: own"]


def test_problems_come_last_and_name_their_experiment(printed: Callable[..., str]) -> None:
    lines, problems = remarks(printed, scores("one", status="missing"), scores("two", "own"))
    assert lines[0] == "note: two: own"
    assert lines[1].startswith("problem: one: A: 1 of 1 runs missing")
    assert problems
