"""Goes through a plan's experiments as they are printed, each with what is wrong with its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.console import Console

from msda_bench.report.problems import problems_of
from msda_bench.report.screen import Screen
from msda_bench.stats.analysis import Analysis
from msda_bench.stats.scores import Scores


def print_experiments(
    console: Console, analyses: Iterable[Analysis], show: Callable[[Screen, Analysis], None]
) -> Screen:
    """Prints each experiment, its notes, and a line for each way in which a method's runs are not ok.

    Args:
        console: where to.
        analyses: of a plan's experiments.
        show: prints one experiment.

    Returns:
        The screen, for what comes after.
    """
    screen = Screen.of(console)
    for analysis in analyses:
        screen.line("")
        show(screen, analysis)
        print_remarks(screen, analysis.scores)
    return screen


def print_remarks(screen: Screen, scores: Scores) -> bool:
    """Prints an experiment's notes, and a line for each way in which a method's runs are not ok.

    Returns:
        Whether any run is not ok.
    """
    return print_all_remarks(screen, [scores])


def print_all_remarks(screen: Screen, tables: Sequence[Scores]) -> bool:
    """The same for several experiments, after all of them: a note that not all have tells whose it is.

    Returns:
        Whether any run is not ok.
    """
    whose: dict[str, list[str]] = {}
    for scores in tables:
        for note in scores.experiment.notes:
            whose.setdefault(note, []).append(scores.experiment.name)
    for note, names in whose.items():
        of = "" if len(names) == len(tables) else f"{', '.join(names)}: "
        screen.line(f"note: {of}{note}", "yellow")
    problems = [problem for scores in tables for problem in problems_of(scores)]
    for problem in problems:
        screen.line(f"problem: {problem}", "red")
    return bool(problems)
