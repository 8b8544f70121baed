"""Metrics of classification computed from counts."""

from __future__ import annotations

from typing import NamedTuple

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
        size, weights = int(tested.confusion[:, :2].max()) + 1, count.double()
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
        found = _Counts.of(tested)
        present = found.has > 0
        return float((found.right[present] / found.has[present]).mean())


@component
class MacroF1(Metric):
    """The mean over the classes of F1, the harmonic mean of precision and recall; as 2 TP / (2 TP + FP + FN)."""

    name = "macro_f1"
    label = "macro F1"
    percent = True

    def value(self, tested: Tested) -> float:
        """The mean F1 over the classes that occur in the test or are predicted."""
        found = _Counts.of(tested)
        both = found.has + found.taken
        seen = both > 0
        return float((2 * found.right[seen] / both[seen]).mean())
