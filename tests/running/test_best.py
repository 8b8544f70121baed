from __future__ import annotations

from fake_training import FakeExpansion, fake_expansion

from msda_bench.running.best import LiveBest
from msda_bench.running.survey import survey
from msda_bench.store import Outcome


def cells_of(expansion: FakeExpansion) -> dict[tuple[str, str, int], str]:
    return {(cell.method, cell.target, cell.seed): cell.key for cell in expansion.plan.cells}


def test_the_leader_is_found_on_runs_that_all_ended() -> None:
    expansion = fake_expansion(methods=("A", "B", "TAR"), targets=("easy", "hard"), seeds=1)
    keys = cells_of(expansion)
    best = LiveBest(survey(expansion))  # type: ignore[arg-type]
    best.finish(keys["TAR", "easy", 0], Outcome(100, 99))
    best.finish(keys["A", "easy", 0], Outcome(100, 90))
    assert best.leaders() == {}  # B has not run on the easy target
    best.finish(keys["B", "easy", 0], Outcome(100, 92))
    assert best.leaders() == {"table": "B 92.00"}
    best.finish(keys["A", "hard", 0], Outcome(100, 60))
    best.finish(keys["A", "hard", 0], Outcome(100, 60))  # told twice, counted once
    best.finish(keys["B", "hard", 0], Outcome(100, 40))
    assert best.leaders() == {"table": "A 75.00"}


def test_a_run_that_failed_does_not_hold_the_others_up() -> None:
    expansion = fake_expansion(methods=("A", "B"), targets=("t",), seeds=1)
    keys = cells_of(expansion)
    best = LiveBest(survey(expansion))  # type: ignore[arg-type]
    best.finish(keys["A", "t", 0], Outcome(100, 10))
    best.finish(keys["B", "t", 0], None)
    assert best.leaders() == {"table": "A 10.00"}


def test_of_squared_errors_the_least_leads() -> None:
    expansion = fake_expansion(methods=("A", "B"), targets=("t",), seeds=1)
    keys = cells_of(expansion)
    tables = expansion.plan.experiments
    object.__setattr__(tables[0], "task", "regression")
    best = LiveBest(survey(expansion))  # type: ignore[arg-type]
    best.finish(keys["A", "t", 0], Outcome(10, sum_squared_error=2.0))
    best.finish(keys["B", "t", 0], Outcome(10, sum_squared_error=1.0))
    assert best.leaders() == {"table": "B 0.1"}
