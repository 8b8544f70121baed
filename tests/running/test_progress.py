import io
import re
from dataclasses import replace

import pytest
from fake_training import fake_cell, fake_expansion
from rich.console import Console

from msda_bench.running.jobs import CellFinished, JobStarted, Noted
from msda_bench.running.progress import LiveProgress, PlainProgress, TimeLeft
from msda_bench.running.runner import missing_runs

EXPANSION = fake_expansion(methods=("A", "[red]B"), targets=("t",), seeds=2)
KEYS = {(cell.method, cell.seed): cell.key for cell in EXPANSION.plan.cells}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_plain_lines_come_at_most_every_five_seconds():
    stream, clock = io.StringIO(), Clock()
    shown = PlainProgress(Console(file=stream, width=200), clock)
    shown.begin(missing_runs(EXPANSION))
    for second, (method, seed) in [(1, ("A", 0)), (6, ("[red]B", 0)), (7, ("A", 1))]:
        clock.now = second
        shown.see(JobStarted((KEYS[method, seed],)))
        shown.see(CellFinished(KEYS[method, seed], "ok"))
    shown.end()
    shown.end()  # reports nothing twice
    assert stream.getvalue().splitlines() == [
        "4 runs to train, 0 stored",
        "2/4 runs in 0:00:06",
        "3/4 runs in 0:00:07",
    ]


def test_start_up_and_bursts_do_not_distort_the_estimate():
    """Four processes with 100 s of start-up and 1 s per cell, whose cells end in ten bursts."""
    cells = {str(seed): fake_cell(seed=seed) for seed in range(40)}
    clock = Clock()
    left = TimeLeft(cells, clock)
    keys = iter(cells)
    left.start(["0", "1", "2", "3"])
    for clock.now in (101, 102):
        ended = [next(keys) for _ in range(4)]
        for key in ended[:-2]:
            left.finish(key)
            assert left.describe() == ""  # too few have ended
        for key in ended[-2:]:
            left.finish(key)
        left.start(ended)
    assert left.describe() == "0:00:08 left"
    clock.now += 3
    assert left.describe() == "0:00:05 left"
    clock.now += 30
    assert left.describe() == "0:00:00 left"
    for key in keys:
        left.finish(key)
    assert left.describe() == ""


def test_a_cell_with_ten_times_the_steps_counts_ten_times():
    short, long = (fake_cell().training.model_copy(update={"epochs": 1, "steps": steps}) for steps in (10, 100))
    cells = {str(place): replace(fake_cell(seed=place), training=short if place < 10 else long) for place in range(20)}
    clock = Clock()
    left = TimeLeft(cells, clock)
    for place in range(10):
        left.start([str(place)])
        clock.now += 1
        left.finish(str(place))
    assert left.describe() == "0:01:40 left"


@pytest.mark.parametrize("kind", [LiveProgress, PlainProgress])
def test_faults_are_reported_at_once_in_plain_words(kind):
    stream, clock = io.StringIO(), Clock()
    live = kind is LiveProgress
    shown = kind(Console(file=stream, width=120, force_terminal=live, color_system=None), clock)
    shown.begin(missing_runs(EXPANSION))
    shown.see(Noted("run abc starts again"))
    shown.see(CellFinished(KEYS["[red]B", 0], "failed", "ValueError: [/red] bad"))
    shown.see(JobStarted((KEYS["A", 1],)))
    clock.now = 65
    shown.see(CellFinished(KEYS["A", 0], "diverged"))
    shown.end()
    text = stream.getvalue()
    assert "run abc starts again" in text
    assert "table: [red]B, t, seed 0: failed: ValueError: [/red] bad" in text
    bad = "2 failed or diverged"
    last = f" 2/4 0:01:05 {bad}, table: A, t, seed 1" if live else f"2/4 runs in 0:01:05, {bad}"
    assert any(line.rstrip().endswith(last) for line in text.splitlines())


def test_the_live_line_fits_80_columns_and_says_why_the_first_result_takes_long():
    stream, clock = io.StringIO(), Clock()
    expansion = fake_expansion(methods=("A", "B" * 60), targets=("t",), seeds=300)
    keys = [cell.key for cell in expansion.plan.cells]
    console = Console(file=stream, width=80, force_terminal=True, color_system=None)
    shown = LiveProgress(console, clock)
    shown.begin(missing_runs(expansion))
    shown.see(JobStarted((keys[0],)))
    for clock.now, words in ((1, "table: A, t, seed 0"), (40, "compiling for this machine, once")):
        shown.see(Noted("a line, above which the bar is drawn again"))
        assert stream.getvalue().rstrip().endswith(words)
    for place, key in enumerate(keys[:450]):
        clock.now = 50 + place
        shown.see(JobStarted((keys[place + 1],)))
        shown.see(CellFinished(key, "diverged" if place % 9 == 0 else "ok"))
    shown.see(Noted("another"))
    shown.end()
    lines = re.split(r"[\r\n]|\x1b\[[\dA-Za-z?]*", stream.getvalue())
    bars = [line for line in lines if "/600" in line]
    assert max(map(len, bars)) == 80, "none is wrapped"
    last = "450/600 0:08:19 0:02:30 left, 50 failed or diverged,"
    assert any(last in line and line.endswith("…") for line in bars)
