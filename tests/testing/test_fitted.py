"""Sins against the contract of schemes that are fitted at once."""

from __future__ import annotations

import random
import sys

import numpy as np

from msda_bench.api import FittedScheme, component
from tests.testing.sins import after, sins

ROWS = 90
"""Examples of the contract's own fits; the engine's have other numbers."""


@component
class Nearest(FittedScheme):
    """The nearest mean of a class, or least squares."""

    name = "nearest"
    far = -1e6
    """The output of a class without examples."""

    def fit(self, rows, task, seed):
        x = self.dense(rows.x)
        if task.kind == "regression":
            slopes = np.linalg.lstsq(np.c_[x, np.ones(len(x))], rows.y, rcond=None)[0]
            return lambda given: self.outputs(np.c_[self.dense(given), np.ones(given.shape[0])] @ slopes[:, None])
        present = np.unique(rows.y)
        means = np.stack([x[rows.y == place].mean(0) for place in present])

        def predict(given):
            outputs = np.full((given.shape[0], task.classes), self.far)
            outputs[:, present] = -((self.dense(given)[:, None] - means) ** 2).sum(-1)
            return self.outputs(outputs)

        return predict

    def dense(self, x):
        return np.asarray(x if isinstance(x, np.ndarray) else x.toarray(), np.float64)

    def outputs(self, values):
        return values


def outputs(function):
    return {"outputs": lambda _, values: function(values)}


def before(function):
    """Does something to the training rows before the fit."""
    return {"fit": lambda self, rows, task, seed: after(function(rows), Nearest.fit(self, rows, task, seed))}


def overwrite(rows):
    if isinstance(rows.x, np.ndarray) and rows.x.flags.writeable:
        rows.x[0] += 1e-6


def steal(self, rows, task, seed):
    frame, predict = sys._getframe(), Nearest.fit(self, rows, task, seed)
    while frame and not hasattr(frame.f_locals.get("run"), "prepared"):
        frame = frame.f_back
    if not frame:
        return predict
    stolen = frame.f_locals["run"].prepared._target_labels.float().mean().item()
    return lambda given: predict(given) * (1 + stolen)


def words(_, x):
    return np.asarray(x, np.float64) if isinstance(x, np.ndarray) else (x.toarray() > 0).astype(np.float64)


BROKEN = {
    "learns": {
        r"it is right on 0\.\d+ of its examples, a constant on": outputs(lambda values: -values),
        "its squared error is .*, a constant's": {"tasks": ("regression",), **outputs(lambda values: 0 * values)},
    },
    "a_class_may_have_no_example": {
        "NaN or infinity in the outputs without examples of the last class": {"far": np.nan},
        "its answer is a class without examples": {"far": 1.0},
    },
    "takes_bags_of_words": {"bags of words give other outputs than the same numbers": {"dense": words}},
    "predicts_each_example_by_itself": {
        "outputs depend on the rest of the batch": outputs(lambda values: values + 0.1 * values.mean()),
    },
    "sees_no_target_label": {"inverting the target's labels .* changes the run's": {"fit": steal}},
    "is_deterministic": {
        "call with the same input changes the outputs": outputs(
            lambda values: values + (len(values) == ROWS) * 1e-5 * random.SystemRandom().random()
        ),
    },
    "input_is_not_changed": {"changed its input, the x": before(overwrite)},
    "leaves_the_process_alone": {"Python's global random generator": before(lambda rows: random.random())},
    "groups_hold_known_domains": {
        r"draws from \['elsewhere'\]; there are only": {
            "groups": lambda self, sources, target: ((*sources, *["elsewhere"] * ("north/0" in sources)),)
        },
    },
}
SINS = sins(Nearest, BROKEN)
