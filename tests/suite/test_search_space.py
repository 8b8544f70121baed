"""The dimensions of a search space, and their draws."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from msda_bench.suite.mistakes import faults
from msda_bench.suite.search_space import Integers, Range, SpaceDimension, Values, draws, grid, grid_size

unit = st.floats(0, 1, exclude_max=True)
ends = st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=2, unique=True).map(sorted)


def reported(raw: object) -> list[tuple[tuple[str | int, ...], str]]:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(SpaceDimension).validate_python(raw)
    return [(fault.loc, fault.what) for fault in faults(caught.value, lambda _: ("key", []))]


@pytest.mark.parametrize(
    ("raw", "loc", "what"),
    [
        (3, (), "must be a list of values or a range such as {log: [0.001, 0.1]}, not 3"),
        ({}, (), "must be a list of values or a range such as {log: [0.001, 0.1]}, not an empty mapping"),
        ([], (), "must have at least one value"),
        ([1, 2, 1], (2,), "1 is listed twice"),
        ([1, {}], (1,), "must be a plain value, not an empty mapping"),
        ({"logs": [1, 2]}, ("logs",), "unknown kind of range (did you mean 'log'?)"),
        ({"log": [1]}, ("log",), "must be the two ends [low, high], not a list"),
        ({"log": [0, 1]}, ("log", 0), "must be greater than 0, not 0"),
        ({"log": [0.1, "x"]}, ("log", 1), "must be a finite number, not 'x'"),
        ({"uniform": [2, 1]}, ("uniform", 1), "must be greater than the low end 2, not 1"),
        ({"uniform": [0, math.inf]}, ("uniform", 1), "must be a finite number, not inf"),
        ({"integers": [1, 2.5]}, ("integers", 1), "must be a whole number, not 2.5"),
        ({"integers": [True, 2]}, ("integers", 0), "must be a whole number, not true"),
    ],
)
def test_invalid_dimensions_are_refused(raw, loc, what):
    assert reported(raw) == [(loc, what)]


@given(ends, unit, st.sampled_from(["log", "uniform"]))
def test_a_range_draws_numbers_of_four_digits_between_its_ends(span, u, kind):
    low, high = span
    drawn = Range(kind, low, high).at(u)
    assert low <= drawn <= high
    assert drawn in (low, high) or drawn == float(f"{drawn:.4g}")


@given(st.integers(-9, 9), st.integers(1, 9), unit)
def test_all_integers_of_a_range_are_drawn_and_no_others(low, more, u):
    found = Integers(range(low, low + more + 1))
    assert found.at(u) in range(low, low + more + 1)
    assert [found.at((index + 0.5) / (more + 1)) for index in range(more + 1)] == list(range(low, low + more + 1))


def test_a_range_may_hold_very_many_integers():
    found = TypeAdapter(SpaceDimension).validate_python({"integers": [-(2**63), 2**63 - 1]})
    assert (found.size, found.at(0.5), found.corners[1]) == (2**64, 0, (("integers", 1), 2**63 - 1))


def test_a_grid_has_every_combination_with_the_last_varying_fastest():
    space = {"a": Values((1, 2)), "b": Integers(range(5, 7))}
    assert grid_size(space) == 4
    assert grid(space) == [{"a": 1, "b": 5}, {"a": 1, "b": 6}, {"a": 2, "b": 5}, {"a": 2, "b": 6}]
    assert grid({}) == [{}]
    assert grid_size({"a": Range("uniform", 0, 1), "b": Values((1,))}) is None


SPACE = {"lr": Values((0.1, 0.3, 1.0)), "mu": Range("log", 0.001, 0.1)}


def test_draws_are_pinned():
    assert draws(SPACE, 3, ("suite", "DARN")) == [
        {"lr": 0.3, "mu": 0.00167},
        {"lr": 0.1, "mu": 0.05479},
        {"lr": 1.0, "mu": 0.0591},
    ]


def test_draws_are_distinct_and_a_larger_budget_extends_them():
    eight, twenty = (draws(SPACE, budget, ("suite", "DARN")) for budget in (8, 20))
    assert twenty[:8] == eight
    assert all(one not in twenty[:index] for index, one in enumerate(twenty))
    assert len(twenty) == 20


def test_each_suite_method_and_path_draws_its_own():
    found = [draws(SPACE, 6, owner) for owner in (("suite", "DARN"), ("suite", "MDAN"), ("other", "DARN"))]
    assert all(one != other for index, one in enumerate(found) for other in found[:index])
    two = draws({"x": Range("uniform", 0, 1), "y": Range("uniform", 0, 1)}, 4, ("suite", "DARN"))
    assert [one["x"] for one in two] != [one["y"] for one in two]


def test_a_paths_draws_do_not_depend_on_other_paths():
    alone = draws({"mu": SPACE["mu"]}, 5, ("suite", "DARN"))
    assert [one["mu"] for one in draws(SPACE, 5, ("suite", "DARN"))] == [one["mu"] for one in alone]


@given(st.integers(1, 12))
def test_a_small_space_is_exhausted_without_repeats(budget):
    space = {"a": Values((1, 2, 3)), "b": Values(("x", "y"))}
    found = draws(space, budget, ("suite", "m"))
    assert len(found) == min(budget, 6)
    assert all(one in grid(space) and one not in found[:index] for index, one in enumerate(found))
    assert budget < 6 or found == grid(space)
