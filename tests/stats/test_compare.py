from __future__ import annotations

import pytest

from msda_bench.stats import signed_rank
from msda_bench.stats.compare import compare_methods
from msda_bench.stats.holm import holm

BASE = [100, 103, 98, 110, 95, 104, 99, 101]


def plus(*steps: int) -> list[int]:
    return [base + step for base, step in zip(BASE, steps, strict=True)]


def only(comparisons, scope="target"):
    (found,) = (pair for pair in comparisons if pair.scope == scope)
    return found


def test_pairs_are_taken_seed_by_seed_in_percent(table):
    pair = only(compare_methods(table({"a": {"x": plus(1, 2, 3, -1, 0, 5, 6, 2)}, "b": {"x": BASE}}).scores))
    differences = [1, 2, 3, -1, 0, 5, 6, 2]
    assert pair.test == signed_rank(differences, "two-sided")
    assert pair.p_one_sided == pair.p_first == signed_rank(differences, "greater").p
    assert pair.p_second == signed_rank(differences, "less").p
    assert (pair.effect.median, pair.effect.mean) == (1.0, 18 / 16)
    assert (pair.effect.wins, pair.effect.ties, pair.effect.losses) == (6, 1, 1)
    assert (pair.better, pair.status, pair.n_planned, pair.n_paired) == ("a", "ok", 8, 8)


def test_a_smaller_squared_error_is_better(table):
    runs = {"a": {"x": [0.5, 0.25, 0.75]}, "b": {"x": [1.0, 0.5, 0.5]}}
    pair = only(compare_methods(table(runs, task="regression").scores))
    assert (pair.better, pair.effect.mean, pair.effect.wins, pair.effect.losses) == ("a", 0.5 / 3, 2, 1)


def test_the_worse_first_method_is_tested_the_other_way(table):
    pair = only(compare_methods(table({"a": {"x": BASE}, "b": {"x": plus(1, 2, 3, 4, 5, 6, 7, 8)}}).scores))
    assert (pair.better, pair.p_one_sided, pair.test.statistic) == ("b", 2**-8, 0)


def test_every_pair_but_references_in_every_scope(table):
    methods = ("a", "ref", "b", "c")
    found = compare_methods(table({name: {"x": BASE, "y": BASE} for name in methods}).scores)
    places = [(pair.scope, pair.column) for pair in found]
    assert (
        places
        == [("target", "x")] * 3
        + [("target", "y")] * 3
        + [("average", "average")] * 3
        + [("across_targets", "across_targets")] * 3
    )
    assert [(pair.first, pair.second) for pair in found[:3]] == [("a", "b"), ("a", "c"), ("b", "c")]


def test_holm_is_taken_within_a_target_only(table):
    runs = {
        "a": {"x": BASE, "y": BASE},
        "b": {"x": plus(1, 2, 3, 4, 5, 6, 7, 8), "y": BASE},
        "c": {"x": plus(1, -2, 3, -4, 5, -6, 7, -8), "y": plus(2, 1, 1, 1, 1, 1, 1, 1)},
    }
    found = compare_methods(table(runs).scores)
    for target in ("x", "y"):
        family = [pair for pair in found if pair.target == target]
        assert tuple(pair.p_holm for pair in family) == holm([pair.test.p for pair in family])
        attainable = holm([pair.test.attainable_p for pair in family])
        assert tuple(pair.attainable_p_holm for pair in family) == attainable
        assert all(pair.attainable_p_holm <= pair.p_holm for pair in family)


def test_the_average_pairs_seeds_whole_at_both_methods(table):
    runs = {
        "a": {"x": [101, 105, 100, 100], "y": [100, 101, None, 100]},
        "b": {"x": [100, 100, 100, 100], "y": [100, 100, 100, "diverged"]},
    }
    pair = only(compare_methods(table(runs).scores), "average")
    assert (pair.n_planned, pair.n_paired, pair.status) == (4, 2, "incomplete")
    assert pair.effect.mean == (0.25 + 1.5) / 2


def test_across_targets_a_pair_is_a_target(table):
    targets = [f"t{i}" for i in range(6)]
    runs = {
        "a": {target: [100 + i + 1, 100 - 3 * i] for i, target in enumerate(targets)},
        "b": {target: [100, 100] for target in targets},
    }
    pair = only(compare_methods(table(runs).scores), "across_targets")
    differences = [1 - 2 * i for i in range(6)]
    assert pair.test == signed_rank(differences, "two-sided")
    assert pair.effect.mean == sum(differences) / 6 / 4
    assert (pair.n_paired, pair.status) == (6, "ok")


def test_across_five_targets_nothing_is_significant_at_any_alpha(table):
    targets = [f"t{i}" for i in range(5)]
    runs = {"a": {t: [101 + i] for i, t in enumerate(targets)}, "b": {t: [100] for t in targets}}
    pair = only(compare_methods(table(runs, alpha=0.2).scores), "across_targets")
    assert pair.p_holm == 0.0625
    assert (pair.status, pair.significant) == ("too_few_pairs", False)


def test_a_missing_run_makes_across_targets_incomplete(table):
    targets = [f"t{i}" for i in range(6)]
    runs = {"a": {t: [101, 101] for t in targets}, "b": {t: [100, 100] for t in targets}}
    runs["b"]["t3"] = [100, None]
    pair = only(compare_methods(table(runs).scores), "across_targets")
    assert (pair.n_paired, pair.n_planned, pair.status) == (6, 6, "incomplete")


@pytest.mark.parametrize(
    ("first", "status", "significant"),
    [
        (plus(1, 2, 3, 4, 5, 6, 7, 8), "ok", True),
        (plus(1, -2, 3, -4, 5, -6, 7, -8), "ok", False),
        (plus(0, 0, 0, 0, 0, 0, 0, 0), "no_differences", False),
        (plus(1, 2, 3, 4, 0, 0, 0, 0), "too_few_pairs", False),
        ([*plus(1, 2, 3, 4, 5, 6, 7, 8)[:-1], None], "incomplete", True),
        ([*plus(1, 2, 3, 4, 5, 6, 7, 8)[:4], None, None, None, "diverged"], "incomplete", False),
        ([None] * 8, "incomplete", False),
    ],
)
def test_status_and_significance(table, first, status, significant):
    pair = only(compare_methods(table({"a": {"x": first}, "b": {"x": BASE}}).scores))
    assert (pair.status, pair.significant) == (status, significant)


def test_too_few_seeds(table):
    pair = only(compare_methods(table({"a": {"x": [2, 3, 4, 5]}, "b": {"x": [1, 1, 1, 1]}}).scores))
    assert (pair.status, pair.attainable_p, pair.p_one_sided) == ("too_few_pairs", 0.0625, 0.0625)


def test_without_pairs_there_is_no_effect(table):
    pair = only(compare_methods(table({"a": {"x": [1, None]}, "b": {"x": [None, 1]}}).scores))
    assert (pair.n_paired, pair.effect, pair.better) == (0, None, None)


def test_one_method_alone_is_compared_with_nothing(table):
    assert compare_methods(table({"a": {"x": [1]}, "ref": {"x": [1]}}).scores) == ()
