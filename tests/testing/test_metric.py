"""The contract of metrics accepts a correct one and catches each sin."""

from __future__ import annotations

import random

from msda_bench.api import Metric, component
from msda_bench.testing import MetricContract
from tests.testing.sins import sin


@component
class Right(Metric):
    """The share of correct test examples."""

    name = "right"
    label = "right"
    percent = True

    def value(self, tested):
        true, predicted, count = tested.confusion.unbind(-1)
        return count[true == predicted].sum().item() / tested.n


class TestRight(MetricContract):
    component = Right()


@component
class Spoiled(Right):
    """Correct except for what a subclass breaks."""

    name = "spoiled"


@sin("says_what_it_is", "label is ''; the contract asks for text for tables")
class Nameless(Spoiled):
    label = ""


@sin("value_is_a_finite_float", "the value is a int; the contract asks for a float")
class Whole(Spoiled):
    def value(self, tested):
        return 1


@sin("value_is_a_finite_float", "shown in percent returns a share in")
class InPercent(Spoiled):
    def value(self, tested):
        return 100 * super().value(tested)


@sin("perfect_runs_are_best", "check higher_is_better")
class UpsideDown(Spoiled):
    higher_is_better = False


@sin("one_label_alone_is_measured_or_undefined", "infinite; return math.nan")
class Infinite(Spoiled):
    def value(self, tested):
        return super().value(tested) if len(tested.confusion[:, 0].unique()) > 1 else float("inf")


@sin("input_is_not_changed", "it changed its input, the confusion, in place")
class Greedy(Spoiled):
    def value(self, tested):
        found = super().value(tested)
        tested.confusion.zero_()
        return found


@sin("is_deterministic", "a second call with the same input changes the value")
class Random(Spoiled):
    def value(self, tested):
        right = super().value(tested)
        return right if right == 1 else right * random.SystemRandom().random()


@sin("leaves_the_process_alone", "it changed Python's global random generator")
class Drawing(Spoiled):
    def value(self, tested):
        random.random()
        return super().value(tested)


@sin("tasks_are_known", r"tasks is \('classification', 'ranking'\); the contract asks for")
class ClassificationAndRanking(Spoiled):
    tasks = ("classification", "ranking")
