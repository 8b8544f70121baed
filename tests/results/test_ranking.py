"""A method of one's own among recorded ones: one question, tested alone against its own control."""

from dataclasses import replace

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
    runs = {name: {"x": [count // 5 for count in counts]} for name, counts in (history | own).items()}
    experiment, *rest = planned(runs, baseline="SRC")
    known = RECIPES | recipes
    methods = tuple(replace(method, recipe=known.get(method.name, "shot(beta=*)")) for method in experiment.methods)
    return [*standing(analyse(frame_of((replace(experiment, methods=methods), *rest))), {"table": [*own]})]


def ahead(of=600, factor=5):
    return [of + factor * step for step in STEPS]


def test_each_method_of_ones_own_has_a_sentence(golden):
    own = {"Mine": ahead()}
    said = {
        "an aggregator is compared with uniform weights": among(own),
        "two methods are corrected for their number alone": among({"Mine": ahead(), "Yours": ahead(factor=10)}),
        "equal in every pair": among({"Mine": [600] * 8}),
        "worse": among({"Mine": ahead(factor=-5)}),
    }
    for recipe in (
        "shot(beta=*)",
        "adapt + d_A, mu 0.5",
        "adapt + coral + mine, mu 0.01",
        "alternate + d_A + mine, mu 0.01",
    ):
        said[f"{recipe} is compared with the baseline"] = among(own, Mine=recipe)
    golden("ranking.txt", "".join(f"{name}:\n{line}\n" for name, lines in said.items() for line in lines))


def test_few_seeds_are_said():
    part = planned({"SRC": {"x": [100, 101]}, "Mine": {"x": [120, 130]}}, baseline="SRC")
    (line,) = standing(analyse(frame_of(part)), {"table": ["Mine"]})
    assert "over 2 seeds, too few seeds for a test (exact p = 0.5)." in line
