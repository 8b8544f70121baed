"""Metrics of classification."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from torch import Tensor

from msda_bench.api import Metric, Tested, component


class _Counts(NamedTuple):
    """Examples of each class, (classes,) float64: true, predicted, and both."""

    has: Tensor
    taken: Tensor
    right: Tensor

    @classmethod
    def of(cls, tested: Tested) -> _Counts:
        true, predicted, count = tested.confusion.unbind(-1)
        size = int(tested.confusion[:, :2].max()) + 1
        weights = count.double()
        has = true.bincount(weights, size)
        taken = predicted.bincount(weights, size)
        return cls(has, taken, true.bincount(weights * (true == predicted), size))


@component
class Accuracy(Metric):
    """The share of the test examples whose class is predicted."""

    name = "accuracy"
    label = "accuracy"
    percent = True

    def value(self, tested: Tested) -> float:
        """Right over all."""
        return float(_Counts.of(tested).right.sum()) / tested.n


@component
class BalancedAccuracy(Metric):
    """The mean over the classes of the share of their test examples that is predicted correctly."""

    name = "balanced_accuracy"
    label = "balanced accuracy"
    percent = True

    def value(self, tested: Tested) -> float:
        """The mean recall over the classes in the test."""
        counts = _Counts.of(tested)
        present = counts.has > 0
        return float((counts.right[present] / counts.has[present]).mean())


@component
class MacroF1(Metric):
    """The mean over the classes of F1, the harmonic mean of precision and recall; as 2 TP / (2 TP + FP + FN)."""

    name = "macro_f1"
    label = "macro F1"
    percent = True

    def value(self, tested: Tested) -> float:
        """The mean F1 over the classes that occur in the test or are predicted."""
        counts = _Counts.of(tested)
        both = counts.has + counts.taken
        seen = both > 0
        return float((2 * counts.right[seen] / both[seen]).mean())


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
        areas = [_area(scores[:, number], labels == number) for number in np.unique(labels)]
        return float(np.mean(areas)) if len(areas) > 1 else math.nan


def _area(scores: np.ndarray, mine: np.ndarray) -> float:
    from scipy.stats import rankdata  # takes most of a second, which runs without this metric save

    n = int(mine.sum())
    others = int((~mine).sum())
    if not others:
        return math.nan
    ranks = rankdata(scores)[mine].sum()
    return float((ranks - n * (n + 1) / 2) / (n * others))
