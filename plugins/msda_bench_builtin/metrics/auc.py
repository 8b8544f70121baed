"""How well each class is ranked above the others."""

from __future__ import annotations

import math

import numpy as np

from msda_bench.api import Metric, Tested, component


@component
class Auc(Metric):
    """The area under the ROC curve, one class against the rest, as mean over the classes, each counting equally.

    For a class it is the probability that one of its test examples has a higher predicted probability of it than an
    example of another class, ties counting half; by ranks, as the statistic of Mann and Whitney.

    Fawcett. An introduction to ROC analysis. Pattern Recognition Letters, 2006.
    """

    name = "auc"
    label = "AUC"
    percent = True
    needs_outputs = True

    def value(self, tested: Tested) -> float:
        """The mean over the classes in the test; undefined if there is only one."""
        # By log-probabilities, since probabilities of confident outputs would all round to 1.
        scores = tested.outputs.double().log_softmax(-1).numpy()
        labels = tested.labels.numpy()
        areas = [_area(scores[:, found], labels == found) for found in np.unique(labels)]
        return float(np.mean(areas)) if len(areas) > 1 else math.nan


def _area(scores: np.ndarray, mine: np.ndarray) -> float:
    from scipy.stats import rankdata  # takes most of a second, which runs without this metric save

    n, others = int(mine.sum()), int((~mine).sum())
    return float((rankdata(scores)[mine].sum() - n * (n + 1) / 2) / (n * others)) if others else math.nan
