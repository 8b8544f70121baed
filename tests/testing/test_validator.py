"""The contract of validators passes an honest one and catches each sin."""

from __future__ import annotations

import random

import pytest

from msda_bench.api import Validator, component
from msda_bench.testing import ComponentContract, ValidatorContract, checks


@component
class Confidence(Validator):
    """Mean largest output on the target."""

    name = "confidence"

    def score(self, view):
        return view.target_outputs.amax(-1).mean().item()


class TestConfidence(ValidatorContract):
    component = Confidence()


@component
class Spoiled(Confidence):
    """Right but for what a subclass spoils."""

    name = "spoiled"


@component
class WrongTasks(Spoiled):
    """A task that is not known."""

    tasks = ("ranking",)


@component
class TensorScore(Spoiled):
    """Returns a tensor."""

    def score(self, view):
        return view.target_outputs.mean()


@component
class TensorScoreOnly(Spoiled):
    """Returns a tensor where a float is asked for."""

    def score(self, view):
        return view.target_outputs.amax(-1).mean()


@component
class Undefined(Spoiled):
    """The spread between the sources, which one source does not have."""

    def score(self, view):
        return 0.0 if len(view.source_outputs) > 1 else float("nan")


@component
class Random(Spoiled):
    """Differs from call to call."""

    def score(self, view):
        return random.SystemRandom().random()


@component
class Seeding(Spoiled):
    """Seeds Python's generator."""

    def score(self, view):
        random.seed(0)
        return super().score(view)


@component
class InPlace(Spoiled):
    """Normalises what it was shown."""

    def score(self, view):
        view.target_outputs.add_(1)
        return 0.0


@pytest.mark.parametrize(
    ("sin", "check", "message"),
    [
        (WrongTasks, "tasks_are_known", r"tasks is \('ranking',\); the contract asks for"),
        (TensorScore, "score_is_a_finite_float", "the score is a Tensor; the contract asks for a float"),
        (Undefined, "score_is_a_finite_float", "the score is nan"),
        (Random, "is_deterministic", "the same view scored twice"),
        (Seeding, "leaves_the_process_alone", "Python's global random generator.*from a fixed key"),
        (InPlace, "input_is_not_changed", "changed its input, the target_outputs, in place"),
    ],
)
def test_catches(catches, sin, check, message):
    catches(sin(), f"test_{check}", message)


@component
class ClassificationAndRanking(Spoiled):
    """Scores a task that there is not, beside one that there is."""

    tasks = ("classification", "ranking")


@component
class Entropy(Spoiled):
    """Takes the logarithm of a probability that may be 0."""

    tasks = ("classification",)

    def score(self, view):
        p = view.target_outputs.softmax(-1)
        return (p * p.log()).sum(-1).mean().item()


@component
class DrawsAndForgets(Spoiled):
    """Draws from Python's global generator, for nothing."""

    def score(self, view):
        random.random()
        return super().score(view)


@component
class OverwritesFeatures(Spoiled):
    """Normalises what it does not use."""

    def score(self, view):
        view.target_features.add_(1)
        return super().score(view)


ALONE = {
    "test_tasks_are_known": ClassificationAndRanking,
    "test_score_is_a_finite_float": TensorScoreOnly,
    "test_sure_and_unsure_models_are_scored": Entropy,
    "test_is_deterministic": Random,
    "test_leaves_the_process_alone": DrawsAndForgets,
    "test_input_is_not_changed": OverwritesFeatures,
}
"""For each clause of the kind's own, a component that breaks it and no other."""


@pytest.mark.parametrize("check", sorted(set(checks("validator")) - set(dir(ComponentContract))))
def test_each_clause_is_broken_alone_by_its_sin(broken, check):
    assert broken(ALONE[check]()) == {check}
