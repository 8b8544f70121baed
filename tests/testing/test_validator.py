"""The contract of validators accepts a correct one and catches each sin."""

from __future__ import annotations

import random

from msda_bench.api import Validator, component
from msda_bench.testing import ValidatorContract
from tests.testing.sins import sin


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
    """Correct except for what a subclass breaks."""

    name = "spoiled"


@sin("score_is_a_finite_float", "the score is a Tensor; the contract asks for a float")
class TensorScoreOnly(Spoiled):
    def score(self, view):
        return view.target_outputs.amax(-1).mean()


@sin("score_is_a_finite_float", "the score is nan")
class Undefined(Spoiled):
    def score(self, view):
        return 0.0 if len(view.source_outputs) > 1 else float("nan")


@sin("is_deterministic", "a second call with the same input changes the score")
class Random(Spoiled):
    def score(self, view):
        return random.SystemRandom().random()


@sin("tasks_are_known", r"tasks is \('classification', 'ranking'\); the contract asks for")
class ClassificationAndRanking(Spoiled):
    tasks = ("classification", "ranking")


@sin("sure_and_unsure_models_are_scored", "of a model that is certain of every example is nan for classification")
class Entropy(Spoiled):
    tasks = ("classification",)

    def score(self, view):
        p = view.target_outputs.softmax(-1)
        return (p * p.log()).sum(-1).mean().item()


@sin("leaves_the_process_alone", "Python's global random generator.*from a fixed key")
class DrawsAndForgets(Spoiled):
    def score(self, view):
        random.random()
        return super().score(view)


@sin("input_is_not_changed", "changed its input, the target_features, in place")
class OverwritesFeatures(Spoiled):
    def score(self, view):
        view.target_features.add_(1)
        return super().score(view)
