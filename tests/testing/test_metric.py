"""Sins against the contract of metrics."""

from __future__ import annotations

import random

from msda_bench.api import Metric, component
from tests.testing.sins import after, sins


@component
class Right(Metric):
    """The share of correct test examples."""

    name = "right"
    label = "right"
    percent = True

    def value(self, tested):
        true, predicted, count = tested.confusion.unbind(-1)
        return self.spoil(count[true == predicted].sum().item() / tested.n, tested)

    def spoil(self, right, tested):
        return right


def value(make):
    return {"spoil": lambda _, right, tested: make(right, tested)}


BROKEN = {
    "says_what_it_is": {"label is ''; the contract asks for text for tables": {"label": ""}},
    "perfect_runs_are_best": {"check higher_is_better": {"higher_is_better": False}},
    "value_is_a_finite_float": {
        "the value is a int; the contract asks for a float": value(lambda right, tested: 1),
        "in percent returns a share in": value(lambda right, tested: 100 * right),
    },
    "one_label_alone_is_measured_or_undefined": {
        "infinite; return math.nan": value(
            lambda right, tested: right if len(tested.confusion[:, 0].unique()) > 1 else float("inf")
        ),
    },
    "input_is_not_changed": {
        "it changed its input, the confusion": value(lambda right, tested: after(tested.confusion.zero_(), right)),
    },
    "is_deterministic": {
        "a second call with the same input changes the value": value(
            lambda right, tested: right if right == 1 else right * random.SystemRandom().random()
        ),
    },
    "leaves_the_process_alone": {
        "it changed Python's global random generator": value(lambda right, tested: after(random.random(), right)),
    },
}
SINS = sins(Right, BROKEN)
