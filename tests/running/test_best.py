from __future__ import annotations

from fake_training import FakeExpansion, fake_expansion

from msda_bench.running.best import BestSoFar
from msda_bench.running.survey import survey
from msda_bench.store import Outcome


def cells_of(expansion: FakeExpansion) -> dict[tuple[str, str, int], str]:
    return {(cell.method, cell.target, cell.seed): cell.key for cell in expansion.plan.cells}


def test_the_best_method_is_found_on_pairs_that_all_methods_finished() -> None:
    expansion = fake_expansion(methods=("A", "B", "TAR"), targets=("easy", "hard"), seeds=1)
    keys = cells_of(expansion)
    best = BestSoFar(survey(expansion))  # type: ignore[arg-type]
    best.finish(keys["TAR", "easy", 0], Outcome(100, 99))
    best.finish(keys["A", "easy", 0], Outcome(100, 90))
    assert best.describe() == ""  # B has not run on the easy target
    best.finish(keys["B", "easy", 0], Outcome(100, 92))
    assert best.describe() == "best so far: table: B 92.00"
    best.finish(keys["A", "hard", 0], Outcome(100, 60))
    best.finish(keys["A", "hard", 0], Outcome(100, 60))  # reported twice, counted once
    best.finish(keys["B", "hard", 0], Outcome(100, 40))
    assert best.describe() == "best so far: table: A 75.00"


def test_a_pair_on_which_one_method_failed_is_ignored() -> None:
    expansion = fake_expansion(methods=("A", "B"), targets=("easy", "hard"), seeds=1)
    keys = cells_of(expansion)
    best = BestSoFar(survey(expansion))  # type: ignore[arg-type]
    best.finish(keys["A", "hard", 0], Outcome(100, 10))
    best.finish(keys["B", "hard", 0], None)
    assert best.describe() == ""
    best.finish(keys["A", "easy", 0], Outcome(100, 90))
    best.finish(keys["B", "easy", 0], Outcome(100, 80))  # whose mean would gain by the hard target it failed on
    assert best.describe() == "best so far: table: A 90.00"


def test_a_single_method_is_not_called_best() -> None:
    expansion = fake_expansion(methods=("A", "B"), targets=("t",), seeds=1)
    chosen = [cell for cell in expansion.plan.cells if cell.method == "A"]
    best = BestSoFar(survey(expansion, None, chosen))  # type: ignore[arg-type]
    best.finish(cells_of(expansion)["A", "t", 0], Outcome(100, 90))
    assert best.describe() == ""


def test_the_smallest_squared_error_is_best() -> None:
    expansion = fake_expansion(methods=("A", "B"), targets=("t",), seeds=1)
    keys = cells_of(expansion)
    object.__setattr__(expansion.plan.experiments[0], "task", "regression")
    best = BestSoFar(survey(expansion))  # type: ignore[arg-type]
    best.finish(keys["A", "t", 0], Outcome(10, sum_squared_error=2.0))
    best.finish(keys["B", "t", 0], Outcome(10, sum_squared_error=1.0))
    assert best.describe() == "best so far: table: B 0.1"
