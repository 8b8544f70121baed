"""The contract of validators passes an honest one and catches each sin."""

from __future__ import annotations

import random

import pytest

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
class WrongTasks(Spoiled):
    """A task that is not known."""

    tasks = ("ranking",)


@component
class TensorScore(Spoiled):
    """Returns a tensor."""

    def score(self, view):
        return view.target_outputs.mean()


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
        (Random, "is_deterministic_and_leaves_the_process_alone", "the same view scored twice"),
        (Seeding, "is_deterministic_and_leaves_the_process_alone", "changed Python's global random generator"),
        (InPlace, "is_deterministic_and_leaves_the_process_alone", "changed what it was shown"),
    ],
)
def test_catches(catches, sin, check, message):
    catches(sin(), f"test_{check}", message)
