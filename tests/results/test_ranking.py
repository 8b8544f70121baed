"""A method of one's own among recorded ones: one question, tested alone against its own control."""

from dataclasses import replace

import pytest

from msda_bench.results.leaderboard import analyse
from msda_bench.results.ranking import standing
from tests.results.conftest import frame_of, planned

RECIPES = {
    "SRC": "pooled, best of 4 (lr) by source_accuracy",
    "even": "adapt + d_A, mu *, best of 4 (lr, mu) by source_accuracy",
    "other": "adapt + mmd(kernels=5, scale=1), mu *",
    "Mine": "adapt + d_A + mine(gamma=1, floor=2), mu 0.01",
}
STEPS = (1, 2, 3, -1, 4, 5, 6, 7)
"""Gains at eight seeds: p = 0.0234, which a correction for 24 comparisons would make 0.56."""


def among(own, **recipes):
    """The sentences on own methods among SRC, `even`, `other` and 20 more of a history."""
    history = {name: [600 + place] * 8 for place, name in enumerate(("SRC", "even", "other"))}
    history |= {f"h{place}": [500 + place] * 8 for place in range(20)}
    runs = {name: {"x": counts} for name, counts in (history | own).items()}
    runs = {name: {"x": [count // 5 for count in of["x"]]} for name, of in runs.items()}
    experiment, cells, records = planned(runs, baseline="SRC")
    known = RECIPES | recipes
    methods = tuple(replace(method, recipe=known.get(method.name, "shot(beta=*)")) for method in experiment.methods)
    runs = frame_of((replace(experiment, methods=methods), cells, records))
    return [*standing(analyse(runs), {"table": [*own]})]


def ahead(of=600, factor=5):
    return [of + factor * step for step in STEPS]


def test_an_aggregator_is_tested_alone_against_uniform_weights():
    (line,) = among({"Mine": ahead()})
    assert line.startswith("table: Mine is number 1 of 24 by the mean (")
    assert "Against even, which has the same discrepancy and uniform weights: +1." in line
    assert line.endswith(" over 8 seeds, significantly better (exact p = 0.023).")


@pytest.mark.parametrize(
    "recipe",
    ["shot(beta=*)", "adapt + d_A, mu 0.5", "adapt + coral + mine, mu 0.01", "alternate + d_A + mine, mu 0.01"],
)
def test_anything_else_is_tested_against_the_baseline(recipe):
    (line,) = among({"Mine": ahead()}, Mine=recipe)
    assert "Against the baseline SRC: +1." in line


def test_several_own_methods_are_corrected_for_their_number_alone():
    lines = among({"Mine": ahead(), "Yours": ahead(factor=10)})
    assert len(lines) == 2
    for line in lines:
        assert line.endswith("significantly better (exact p = 0.047, corrected for 2 methods of yours).")


def test_few_seeds_equal_runs_and_worse_ones_are_said_as_they_are():
    (line,) = among({"Mine": [600] * 8})
    assert "equal in every pair" in line
    (line,) = among({"Mine": [600 - 5 * step for step in STEPS]})
    assert "significantly worse (exact p = 0.023)" in line
    experiment, cells, records = planned({"SRC": {"x": [100, 101]}, "Mine": {"x": [120, 130]}}, baseline="SRC")
    (line,) = standing(analyse(frame_of((experiment, cells, records))), {"table": ["Mine"]})
    assert "over 2 seeds, too few seeds for a test (exact p = 0.5)." in line
