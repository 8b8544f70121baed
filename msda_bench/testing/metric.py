"""The contract of metrics."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import ClassVar

import torch

from msda_bench.api import Metric, Tested
from msda_bench.testing import toy
from msda_bench.testing.component import Call, TaskContract


class MetricContract(TaskContract):
    """What every metric promises.

    Attributes:
        component: the metric under test.
    """

    component: ClassVar[Metric]
    draws: ClassVar[str] = "draw with msda_bench.functional.uniform from a fixed key"

    def views(self) -> list[Tested]:
        """Test results for a task of each kind that it supports, without outputs unless it needs them."""
        return [self._shown(toy.metric_view(task)) for task in self.tasks()]

    def calls(self) -> Iterator[Call]:
        """The value of each test result."""
        return map(self._call, self.views())

    def test_says_what_it_is(self) -> None:
        """It has a label for tables, and its flags are bool."""
        label = getattr(self.component, "label", None)
        self.holds(isinstance(label, str) and label, f"label is {label!r}; the contract asks for text for tables")
        for name in ("higher_is_better", "percent", "needs_outputs"):
            said = getattr(self.component, name)
            self.holds(type(said) is bool, f"{name} is {said!r}; the contract asks for True or False")

    def test_value_is_a_finite_float(self) -> None:
        """The value is a finite Python float for a test with several labels, and in [0, 1] if shown in percent."""
        for tested in self.views():
            value = self.component.value(tested)
            kind = type(value).__name__
            self.holds(isinstance(value, float), f"the value is a {kind}; the contract asks for a float")
            self.holds(math.isfinite(value), f"the value is {value}; the contract asks for a finite one")
            share = not self.component.percent or 0 <= value <= 1
            self.holds(share, f"the value is {value}; a metric shown in percent returns a share in [0, 1]")

    def test_perfect_runs_are_best(self) -> None:
        """No run has a better value than one that makes no mistake."""
        for task in self.tasks():
            some, best = (
                self.component.value(self._shown(toy.metric_view(task, perfect=one))) for one in (False, True)
            )
            right = best >= some if self.component.higher_is_better else best <= some
            self.holds(right, f"a perfect run scores {best}, a worse one {some}; check higher_is_better")

    def test_one_label_alone_is_measured_or_undefined(self) -> None:
        """If all labels are equal, the value is a finite float, or NaN if it is undefined."""
        for task in self.tasks():
            value = self.component.value(self._shown(toy.metric_view(task, one_label=True)))
            self.holds(isinstance(value, float), f"if all labels are equal the value is {value!r}, not a float")
            self.holds(not math.isinf(value), "if all labels are equal the value is infinite; return math.nan")

    def _shown(self, tested: Tested) -> Tested:
        if self.component.needs_outputs:
            return tested
        return dataclasses.replace(tested, outputs=torch.zeros(0, 1), labels=torch.zeros(0))

    def _call(self, tested: Tested) -> Call:
        given = {name: tensor for name, tensor in vars(tested).items() if isinstance(tensor, torch.Tensor)}
        return Call(lambda: {"value": torch.tensor(self.component.value(tested), dtype=torch.float64)}, given)
