"""The contract of validators."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from msda_bench.api import ValidationView, Validator
from msda_bench.testing import toy
from msda_bench.testing.component import Call, TaskContract

_SURE = 1e4
"""Outputs in [0, 1) scaled by this give probabilities of exactly 0 and 1."""


class ValidatorContract(TaskContract):
    """What every validator promises.

    Attributes:
        component: the validator under test.
    """

    component: ClassVar[Validator]
    draws: ClassVar[str] = "draw with msda_bench.functional.uniform from a fixed key"

    def views(self, sources: int = 2) -> list[ValidationView]:
        """A view for a task of each kind that it supports."""
        return [toy.validation_view(task, sources) for task in self.tasks()]

    def calls(self) -> Iterator[Call]:
        """The score of each view."""
        return map(self._call, self.views())

    def test_score_is_a_finite_float(self) -> None:
        """The score is a finite Python float, with one source and with several."""
        for view in (*self.views(1), *self.views(3)):
            score = self.component.score(view)
            kind, where = type(score).__name__, f"the score is {score} for {view.task.kind}"
            self.holds(isinstance(score, float), f"the score is a {kind}; the contract asks for a float")
            self.holds(math.isfinite(score), f"{where}; the contract asks for a finite one")

    def test_sure_and_unsure_models_are_scored(self) -> None:
        """The score is finite for a model that is certain of every example, and for one whose outputs are all zero."""
        for view in self.views():
            for what, scale in (("that is certain of every example", _SURE), ("whose outputs are all zero", 0.0)):
                outputs = tuple(scale * outputs for outputs in view.source_outputs)
                shown = dataclasses.replace(view, source_outputs=outputs, target_outputs=scale * view.target_outputs)
                score = self.component.score(shown)
                self.holds(
                    math.isfinite(score),
                    f"the score of a model {what} is {score} for {view.task.kind}; the contract asks for a finite one "
                    "(a probability of 0 has no logarithm, a vector of zeros no direction)",
                )

    def _call(self, view: ValidationView) -> Call:
        given: dict[str, Tensor] = {"target_features": view.target_features, "target_outputs": view.target_outputs}
        for name in ("source_features", "source_outputs", "source_labels"):
            given |= {f"{name}[{i}]": tensor for i, tensor in enumerate(getattr(view, name))}
        return Call(lambda: {"score": torch.tensor(float(self.component.score(view)), dtype=torch.float64)}, given)
