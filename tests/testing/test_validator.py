"""Sins against the contract of validators, and against what it has in common with all."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from msda_bench.api import Validator, component
from msda_bench.testing import CONTRACTS, ValidatorContract, checks, contract
from tests.testing.sins import after, sins


@component
class Confidence(Validator):
    """Mean largest output on the target."""

    name = "confidence"

    def score(self, view):
        return self.spoil(view.target_outputs.amax(-1).mean().item(), view)

    def spoil(self, score, view):
        return score


@component
class Forgetful(Confidence):
    """Changes its parameter."""

    width: int = 1

    def params(self) -> dict[str, Any]:
        return {"width": self.width + 1}


@component
class Unpicklable(Confidence):
    """Changes a parameter when pickled."""

    width: int = 1

    def __reduce__(self):
        return Unpicklable._other, ()

    @staticmethod
    def _other():
        return Unpicklable(width=2)


def score(make):
    return {"spoil": lambda _, score, view: make(score, view)}


def entropy(_, view):
    p = view.target_outputs.softmax(-1)
    return (p * p.log()).sum(-1).mean().item()


BROKEN = {
    "is_described": {
        "no docstring; its first line is what `msda-bench plugins` shows": {"__doc__": None},
        "needs a `name` of letters, digits, .* not 'bad name'": {"name": "bad name"},
        "needs a whole `version` of at least 1, not '1'": {"version": "1"},
        "needs a whole `version` of at least 1, not 0": {"version": 0},
    },
    "score_is_a_finite_float": {
        "the score for classification is a Tensor; the contract asks for a float": score(
            lambda score, _: torch.tensor(score)
        ),
        "the score for classification is nan": score(
            lambda _, view: 0.0 if len(view.source_outputs) > 1 else float("nan")
        ),
    },
    "is_deterministic": {
        "a second call with the same input changes the score": score(lambda *_: random.SystemRandom().random()),
    },
    "sure_and_unsure_models_are_scored": {
        "model that is certain of every example for classification is nan": {
            **score(entropy),
            "tasks": ("classification",),
        },
    },
    "leaves_the_process_alone": {
        "random generator.*from a fixed key": score(lambda score, _: after(random.random(), score)),
    },
    "input_is_not_changed": {
        "its input, the target_features": score(lambda score, view: after(view.target_features.add_(1), score)),
    },
}
SINS = sins(Confidence, BROKEN)
SINS += sins(Forgetful, {"parameters_round_trip": {r"made from its own params\(\) .* it differs": {}}})
SINS += sins(Unpicklable, {"pickles": {"pickling changes it": {}}})


def test_a_component_without_the_decorator_breaks_the_contract():
    class Undecorated(Confidence):
        """A class without the decorator."""

    made = contract(Undecorated())
    assert (type(made).__name__, type(made).__mro__[1]) == ("TestUndecorated", ValidatorContract)
    with pytest.raises(AssertionError, match="Undecorated is not decorated with @component"):
        made.test_is_described()


def test_every_check_has_a_docstring():
    for kind, base in CONTRACTS.items():
        assert {"test_is_described", "test_parameters_round_trip", "test_pickles"} <= {*checks(kind)}
        assert all(getattr(base, name).__doc__ for name in checks(kind))
