"""The contracts of validators and metrics, which give one number each."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, cast

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from msda_bench.api import Metric, Task, Tested, ValidationView, Validator
from msda_bench.engine.outcome import test_outcome, view_of
from msda_bench.store.record import Outcome
from msda_bench.testing import toy
from msda_bench.testing.component import Call, TaskContract

_SURE = 1e4
"""Outputs in [0, 1) scaled by this give probabilities of exactly 0 and 1."""


class _NumberContract(TaskContract):
    draws: ClassVar[str] = "draw with msda_bench.functional.uniform from a fixed key"
    named: ClassVar[str]
    """The method that gives the number."""

    @abstractmethod
    def views(self) -> Sequence[Any]:
        """What it is shown, for a task of each kind that it supports."""

    def calls(self) -> Iterator[Call]:
        """The number of each view."""
        return map(self._call, self.views())

    def _call(self, view: Any) -> Call:
        given = {name: value for name, value in vars(view).items() if isinstance(value, Tensor)}
        for name, value in vars(view).items():
            if isinstance(value, tuple):
                given |= {f"{name}[{i}]": part for i, part in enumerate(value)}
        ask = getattr(self.component, self.named)
        return Call(lambda: {self.named: torch.tensor(float(ask(view)), dtype=torch.float64)}, given)


class ValidatorContract(_NumberContract):
    """What every validator promises."""

    component: ClassVar[Validator]
    named: ClassVar[str] = "score"

    def views(self, sources: int = 2) -> list[ValidationView]:
        """A view for a task of each kind that it supports."""
        return [toy.validation_view(task, sources) for task in self.tasks()]

    def test_score_is_a_finite_float(self) -> None:
        """The score is a finite Python float, with one source and with several."""
        for view in (*self.views(1), *self.views(3)):
            self.is_finite_float(self.component.score(view), f"the score for {view.task.kind}")

    def test_sure_and_unsure_models_are_scored(self) -> None:
        """The score is finite for a model that is certain of every example, and for one whose outputs are all zero."""
        for view in self.views():
            for what, scale in (("that is certain of every example", _SURE), ("whose outputs are all zero", 0.0)):
                outputs = tuple(scale * outputs for outputs in view.source_outputs)
                shown = dataclasses.replace(view, source_outputs=outputs, target_outputs=scale * view.target_outputs)
                score = f"the score of a model {what} for {view.task.kind}"
                why = " (a probability of 0 has no logarithm, a vector of zeros no direction)"
                self.is_finite_float(self.component.score(shown), score, why)


class MetricContract(_NumberContract):
    """What every metric promises."""

    component: ClassVar[Metric]
    named: ClassVar[str] = "value"

    def views(self) -> list[Tested]:
        """Test results for a task of each kind that it supports, without outputs unless it needs them."""
        return [self._tested(task) for task in self.tasks()]

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
            self.is_finite_float(value, "the value")
            share = not self.component.percent or 0 <= value <= 1
            self.holds(share, f"the value is {value}; a metric shown in percent returns a share in [0, 1]")

    def test_perfect_runs_are_best(self) -> None:
        """No run has a better value than one that makes no mistake."""
        for task in self.tasks():
            some, best = (self.component.value(self._tested(task, perfect=perfect)) for perfect in (False, True))
            right = best >= some if self.component.higher_is_better else best <= some
            self.holds(right, f"a perfect run scores {best}, a worse one {some}; check higher_is_better")

    def test_one_label_alone_is_measured_or_undefined(self) -> None:
        """If all labels are equal, the value is a finite float, or NaN if it is undefined."""
        for task in self.tasks():
            value = self.component.value(self._tested(task, one_label=True))
            self.holds(isinstance(value, float), f"if all labels are equal the value is {value!r}, not a float")
            self.holds(not math.isinf(value), "if all labels are equal the value is infinite; return math.nan")

    def _tested(self, task: Task, *, perfect: bool = False, one_label: bool = False) -> Tested:
        """The results of twelve tests of a poor or a perfect model, with random labels or only one."""
        y = toy.labels(task, 12, stream=40)
        y = y[:1].expand(12).clone() if one_label else y
        if task.has_classes:
            outputs = 9.0 * one_hot(y, task.classes) if perfect else toy.numbers(12, task.classes, stream=41)
        else:
            outputs = (y if perfect else y + toy.numbers(12, stream=41)).unsqueeze(-1)
        counted = cast("Outcome", test_outcome(outputs, task, y))  # of finite outputs
        return view_of(counted, outputs, y) if self.component.needs_outputs else view_of(counted)
