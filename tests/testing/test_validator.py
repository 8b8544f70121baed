"""The contract of validators passes an honest one and catches each sin."""

from __future__ import annotations

import random

from msda_bench.api import Validator, component
from msda_bench.testing import ValidatorContract


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


SINS = [
    (ClassificationAndRanking, "tasks_are_known", r"tasks is \('classification', 'ranking'\); the contract asks for"),
    (TensorScoreOnly, "score_is_a_finite_float", "the score is a Tensor; the contract asks for a float"),
    (Undefined, "score_is_a_finite_float", "the score is nan"),
    (Random, "is_deterministic", "the same view scored twice"),
    (DrawsAndForgets, "leaves_the_process_alone", "Python's global random generator.*from a fixed key"),
    (OverwritesFeatures, "input_is_not_changed", "changed its input, the target_features, in place"),
    (Entropy, "sure_and_unsure_models_are_scored", "of a model sure of everything is nan for classification"),
]
"""What spoils a component, the clause that it breaks and how the kit says so."""
