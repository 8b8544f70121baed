"""Metrics of regression."""

from __future__ import annotations

import math
import sys

from msda_bench.api import Metric, Tested, component


@component
class MeanSquaredError(Metric):
    """The mean squared error, in squared units of the labels."""

    name = "mse"
    label = "mean squared error"
    tasks = ("regression",)
    higher_is_better = False

    def value(self, tested: Tested) -> float:
        """The mean over the test examples."""
        return tested.sum_squared_error / tested.n


@component
class MeanAbsoluteError(Metric):
    """The mean absolute error, in units of the labels."""

    name = "mae"
    label = "mean absolute error"
    tasks = ("regression",)
    higher_is_better = False

    def value(self, tested: Tested) -> float:
        """The mean over the test examples."""
        return tested.sum_absolute_error / tested.n


@component
class R2(Metric):
    """The coefficient of determination: 1 - squared errors over the labels' squared distances from their mean."""

    name = "r2"
    label = "R2"
    tasks = ("regression",)

    def value(self, tested: Tested) -> float:
        """1 for no error, 0 for the labels' mean as every prediction; undefined if all labels are equal."""
        spread = tested.sum_squared_labels - tested.sum_labels**2 / tested.n
        rounding = tested.n * sys.float_info.epsilon * tested.sum_squared_labels
        return 1 - tested.sum_squared_error / spread if spread > rounding else math.nan
