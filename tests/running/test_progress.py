from __future__ import annotations

import io

import pytest
from fake_training import fake_expansion
from rich.console import Console

from msda_bench.running.events import CellFinished, JobStarted, Noted
from msda_bench.running.progress import LiveProgress, PlainProgress, progress
from msda_bench.running.survey import survey
from msda_bench.store import Outcome

EXPANSION = fake_expansion(methods=("A", "[red]B"), targets=("t",), seeds=2)
KEYS = {(cell.method, cell.seed): cell.key for cell in EXPANSION.plan.cells}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_plain_lines_come_at_most_every_five_seconds() -> None:
    stream, clock = io.StringIO(), Clock()
    shown = PlainProgress(Console(file=stream, width=200), clock)
    shown.begin(survey(EXPANSION))  # type: ignore[arg-type]
    for second, (method, seed) in [(1, ("A", 0)), (6, ("[red]B", 0)), (7, ("A", 1))]:
        clock.now = second
        shown.see(JobStarted((KEYS[method, seed],)))
        shown.see(CellFinished(KEYS[method, seed], "ok", Outcome(100, 50 + seed)))
    shown.end()
    shown.end()  # tells nothing that was told
    assert stream.getvalue().splitlines() == [
        "4 cells to train, 0 stored",
        "2/4 cells, 3.0 s each, 0:06 left; best so far: table: A 50.00",
        "3/4 cells, 2.3 s each, 0:02 left; best so far: table: A 50.00",
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_what_went_wrong_is_told_at_once_and_in_plain_words(terminal: bool) -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=200, force_terminal=terminal)
    shown = progress(console)
    assert isinstance(shown, LiveProgress if terminal else PlainProgress)
    shown.begin(survey(EXPANSION))  # type: ignore[arg-type]
    shown.see(Noted("cell abc runs again"))
    shown.see(CellFinished(KEYS["[red]B", 0], "failed", None, "ValueError: [/red] bad"))
    shown.end()
    text = stream.getvalue()
    assert "cell abc runs again" in text
    assert "table: [red]B, t, seed 0: failed: ValueError: [/red] bad" in text
    assert "1/4 cells" in text
