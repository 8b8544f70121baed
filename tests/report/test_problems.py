from __future__ import annotations

from msda_bench.report.problems import find_problems
from msda_bench.store.record import Outcome


def test_one_line_for_each_method_and_way(sample):
    said = "RuntimeError: bad [31m shape in seed 0 second line"
    assert [str(problem) for problem in find_problems(*sample)] == [
        "reviews: MDAN-hard: 4 of 32 runs missing, first at target kitchen, seed 1",
        "reviews: DARN: 1 of 32 runs diverged, first at target dvd, seed 2: loss is nan in epoch 3",
        f"reviews: NEW: 20 of 32 runs failed, first at target books, seed 0: {said}",
        "reviews: NEW: 12 of 32 runs out of memory, first at target books, seed 5",
    ]


def test_nothing_wrong(make_sample):
    assert find_problems(*make_sample(lambda *_: Outcome(2, n_correct=1))) == ()


def test_references_are_named_too(make_sample):
    found = find_problems(
        *make_sample(lambda name, *_: None if name == "ref" else Outcome(2, n_correct=1), ("a", "ref"))
    )
    assert [(problem.method, problem.count) for problem in found] == [("ref", 12)]


def test_long_messages_are_cut(make_sample):
    (problem, *_) = find_problems(*make_sample(lambda *_: "failed: " + "x" * 5000))
    assert problem.message == "x" * 197 + "..."
