"""The first suite of a user's data, which `data identify` writes: its targets, seeds and methods."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msda_bench_builtin.optional import installed

Recipes: TypeAlias = dict[str, dict[str, Any]]
"""What a suite says of each method, by its name."""
Settings: TypeAlias = dict[str, tuple[Any, str]]
"""Settings of a suite, each with a comment or ""."""
_MOST_TARGETS, _CHOSEN = 20, 8
"""Of more domains not all are targets, but so many."""
_BOOSTED = 2000
"""Columns times classes for which boosting takes seconds rather than minutes."""
_SQUARED = 1000
"""Columns whose covariances take a second at most."""
_ALPHA = 0.05


def comparison(domains: Sequence[str], methods: Recipes, settings: Settings) -> Settings:
    """A suite in which each domain in turn is the target; `settings` are those of training and of the metric.

    The seeds are the fewest that can show a gain over the first method: an exact test of n seeds can reach 2 / 2^n at
    best, times the number of comparisons.
    """
    compared = sum(not recipe.get("reference") for recipe in methods.values()) - 1
    seeds = 1 + math.ceil(math.log2(compared / _ALPHA))
    why = f"splits; fewer could not show a difference after the correction for {compared} comparisons"
    first, *_ = methods
    about = f"{first} and plain models do not adapt; -domain: each domain's features standardised by themselves"
    return {
        "targets": _targets(domains),
        "seeds": (seeds, why),
        **settings,
        "methods": (methods, f"{about}; references learn from the target's labels, which you lack"),
        "compare": ({"pairs": "baseline"}, ""),
    }


def answers(targets: Sequence[str], methods: Recipes, settings: Settings, *, classes: bool) -> Settings:
    """A suite whose targets have no labels, so that validators select and predictions are kept."""
    validators = ["source_accuracy", "bnm", "snd"] if classes else ["source_risk"]
    rates = {"training.optimizer.adam.lr": [0.001, 0.003, 0.01]}
    return {
        "targets": ([*targets], "without labels: no score, no rank and no test can be known"),
        "seeds": (5, "models, whose answers can be averaged"),
        **settings,
        "keep": (["predictions"], "of every row of the target; see mb.load_predictions"),
        "validators": (validators, "scores that need no label of the target"),
        "select": ({"how": "grid", "budget": 3, "by": "bnm" if classes else "source_risk", "space": rates}, ""),
        "methods": (methods, "SRC and plain models do not adapt"),
    }


def _targets(domains: Sequence[str]) -> tuple[Any, str]:
    """All domains, or a few of many."""
    if len(domains) <= _MOST_TARGETS:
        return "all", "each domain in turn, from all others"
    chosen = random.Random(0).sample(sorted(domains), _CHOSEN)  # noqa: S311 - a choice that anyone can repeat
    names = [name for name in domains if name in chosen]
    return names, f"{_CHOSEN} of {len(domains)} domains, drawn at random; all: every domain in turn"


def about_targets(domains: Sequence[str]) -> list[str]:
    """A line on the choice of targets, if there are many domains."""
    if len(domains) <= _MOST_TARGETS:
        return []
    what = f"{_CHOSEN} of {len(domains)} domains, drawn at random"
    return [f"targets: {what}, since each adds runs with {len(domains) - 1} sources; `targets: all` takes every domain"]


def plain_methods(columns: int, classes: int, *, several: bool) -> Recipes:
    """Methods to compare with: no adaptation but each domain standardised, and plain models that can be trained here.

    Args:
        columns: how many numbers an example is; 0 for one that is no row of numbers, as plain models need it.
        classes: how many classes are predicted; 0 for a number.
        several: whether every target has two sources, which an adapter that is told the domains needs.
    """
    by_domain = {"standardise": "domain"}
    methods: Recipes = {"SRC-domain": {"scheme": "pooled"} | by_domain}
    if not columns or not installed("sklearn"):
        return methods
    linear = "logistic_regression" if classes else "ridge"
    models = {"logistic" if classes else "ridge": linear}
    if columns * max(1, classes) <= _BOOSTED:
        models["boosting"] = "gradient_boosting"
    models["forest"] = "random_forest"
    for name, scheme in models.items():
        methods[name] = {"scheme": scheme}
        methods[f"{name}-domain"] = {"scheme": scheme} | by_domain
    if several and columns <= _SQUARED and installed("skada", "ot"):
        adapted: Mapping[str, str] = {"adapter": "CORAL", "estimator": linear}
        methods[f"CORAL-{next(iter(models))}"] = {"scheme": {"skada": adapted}}
    return methods
