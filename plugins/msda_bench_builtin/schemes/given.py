"""References that train nothing: predictions that come with the data, and what a model scores that learned nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from msda_bench.api import Array, FitData, Inputs, Predictor, Task, component


@component
class Given(Predictor):
    """The predictions that come with the data, such as a zero-shot model's: a reference, shown but never ranked.

    The dataset names them, as `predictions` of `table` and `arrays` does. Nothing is trained, and no validator scores.
    """

    name = "given"
    uses_inputs = False
    uses_predictions = True

    def fit(self, rows: FitData, task: Task, seed: int) -> Callable[[Inputs], Array]:
        """The predictions as they are."""
        return np.asarray


@component
class Chance(Predictor):
    """What a model scores that learned nothing: the most frequent class of all source labels, or their mean.

    Of equally frequent classes the first. The outputs are the logarithms of the shares of the classes, with one example
    more of each, so that none is infinite.
    """

    name = "chance"
    uses_inputs = False

    def fit(self, rows: FitData, task: Task, seed: int) -> Callable[[Inputs], Array]:
        """Counts the labels."""
        if task.has_classes:
            counts = np.bincount(rows.y, minlength=task.classes) + 1
            answer = np.log(counts / counts.sum())
        else:
            answer = rows.y.mean(dtype=np.float64, keepdims=True)
        return lambda x: np.tile(answer, (x.shape[0], 1))
