"""The contract of validators."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

from msda_bench.api import Task, ValidationView, Validator
from msda_bench.testing import toy
from msda_bench.testing.claims import equal
from msda_bench.testing.component import ComponentContract
from msda_bench.testing.guard import leaves_alone

_SURE = 1e4
"""Outputs in [0, 1) times this leave probabilities of exactly 0 and 1."""


class ValidatorContract(ComponentContract):
    """What every validator promises.

    Attributes:
        component: the validator under test.
    """

    component: ClassVar[Validator]
    draws: ClassVar[str] = "draw with msda_bench.functional.uniform from a fixed key"

    def tasks(self) -> list[Task]:
        """A task of each kind that it scores."""
        return [task for task in toy.TASKS if task.kind in self.component.tasks]

    def test_tasks_are_known(self) -> None:
        """It scores classification, regression or both."""
        tasks = self.component.tasks
        known = {task.kind for task in toy.TASKS}
        right = bool(tasks) and isinstance(tasks, tuple) and set(tasks) <= known
        assert right, f"{self.who}: tasks is {tasks!r}; the contract asks for a tuple of {' and '.join(sorted(known))}"

    def test_score_is_a_finite_float(self) -> None:
        """The score is a Python float, finite, with one source and with several."""
        for task in self.tasks():
            for sources in (1, 3):
                score = self.component.score(toy.validation_view(task, sources))
                kind = type(score).__name__
                assert isinstance(score, float), f"{self.who}: the score is a {kind}; the contract asks for a float"
                assert math.isfinite(score), (
                    f"{self.who}: the score is {score} for {task.kind}; the contract asks for a finite one"
                )

    def test_sure_and_unsure_models_are_scored(self) -> None:
        """The score is finite for a model that is sure of everything, and for one that gives every example the same."""
        for task in self.tasks():
            view = toy.validation_view(task)
            for what, scale in (("sure of everything", _SURE), ("that gives every example the same", 0.0)):
                shown = dataclasses.replace(
                    view,
                    source_outputs=tuple(scale * outputs for outputs in view.source_outputs),
                    target_outputs=scale * view.target_outputs,
                )
                score = self.component.score(shown)
                assert math.isfinite(score), (
                    f"{self.who}: the score of a model {what} is {score} for {task.kind}; the contract asks for a "
                    "finite one (a probability of 0 has no logarithm, a vector of zeros no direction)"
                )

    def test_is_deterministic(self) -> None:
        """The same view gives the same score."""
        for task in self.tasks():
            view = toy.validation_view(task)
            first, second = self.component.score(view), self.component.score(view)
            assert first == second, f"{self.who}: the same view scored twice gives {first} and {second}"

    def test_leaves_the_process_alone(self) -> None:
        """No global random generator, default dtype, number of threads or gradient mode is touched."""
        for task in self.tasks():
            with leaves_alone(self.who, self.draws):
                self.component.score(toy.validation_view(task))

    def test_input_is_not_changed(self) -> None:
        """What it is shown is left as it was."""
        for task in self.tasks():
            view = toy.validation_view(task)
            self.component.score(view)
            self._unchanged(view, toy.validation_view(task))

    def _unchanged(self, view: ValidationView, fresh: ValidationView) -> None:
        pairs = [
            *zip(view.source_features, fresh.source_features, strict=True),
            *zip(view.source_outputs, fresh.source_outputs, strict=True),
            *zip(view.source_labels, fresh.source_labels, strict=True),
            (view.target_features, fresh.target_features),
            (view.target_outputs, fresh.target_outputs),
        ]
        for now, then in pairs:
            equal(now, then, f"{self.who} changed what it was shown; the contract asks to leave it")
