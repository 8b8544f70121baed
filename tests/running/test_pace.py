from __future__ import annotations

import pytest

from msda_bench.running.pace import Pace, duration


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_rate_is_that_of_the_cells_that_ended() -> None:
    clock = Clock()
    pace = Pace(30, clock)
    assert pace.describe() == "0/30 cells"
    for _ in range(10):
        pace.count(well=True)
    clock.now += 5
    assert pace.describe() == "10/30 cells, 2.0/s, 0:10 left"
    pace.count(well=False)
    clock.now += 105
    assert pace.describe() == "11/30 cells, 10 s each, 3:10 left, 1 failed or diverged"


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3723, "1:02:03")])
def test_a_duration_reads_like_a_clock(seconds: float, text: str) -> None:
    assert duration(seconds) == text
