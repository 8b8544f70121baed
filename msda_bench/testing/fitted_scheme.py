"""The contract of schemes that are fitted at once."""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import FittedScheme, Inputs, Task
from msda_bench.testing import toy
from msda_bench.testing.component import Call, TaskContract
from msda_bench.testing.trial import SOURCES, TARGET, trained

_ROWS = 90


class FittedSchemeContract(TaskContract):
    """What every scheme that is fitted at once promises.

    Attributes:
        component: the scheme under test.
    """

    component: ClassVar[FittedScheme]
    draws: ClassVar[str] = "draw all random numbers from the seed that `fit` is given"

    def calls(self) -> Iterator[Call]:
        """A fit and a prediction of each task."""
        return map(self._call, self.tasks())

    def test_groups_hold_known_domains(self) -> None:
        """It learns from the sources; from the target only if it sets `needs_target_labels`."""
        learned = {domain for group in self.component.groups(SOURCES, TARGET) for domain in group}
        unknown = learned - {*SOURCES, TARGET}
        self.holds(
            learned and not unknown, f"it learns from {sorted(learned)}; there are only {SOURCES} and {TARGET!r}"
        )
        honest = TARGET not in learned or self.component.needs_target_labels
        self.holds(honest, "it learns labels of the target; an oracle must set `needs_target_labels = True`")

    def test_predicts_each_example_by_itself(self) -> None:
        """Each example has one finite row of outputs, which does not depend on the other examples."""
        for task in self.tasks():
            x = toy.numbers(_ROWS, toy.WIDTH)
            predict = self.component.fit(x.numpy(), toy.labels(task, _ROWS).numpy(), task, 1)
            whole, first = (torch.from_numpy(np.asarray(predict(rows.numpy()))) for rows in (x, x[:2]))
            self.has_shape(whole, (_ROWS, task.outputs), f"the outputs ({task.kind})")
            self.is_finite(whole, f"the outputs ({task.kind})")
            self.close(first, whole[:2], "an example's outputs depend on the other examples")

    def test_learns(self) -> None:
        """Its outputs for the examples that it was fitted to are better than a constant's."""
        for task in self.tasks():
            x = toy.numbers(_ROWS, toy.WIDTH)
            y = (task.classes * x[:, 0]).long() if task.kind == "classification" else x[:, 0]
            outputs = torch.from_numpy(np.asarray(self.component.fit(x.numpy(), y.numpy(), task, 1)(x.numpy())))
            if task.kind == "classification":
                best, right = y.bincount().max() / _ROWS, (outputs.argmax(1) == y).float().mean()
                self.holds(right > best, f"it is right on {right:.2f} of its examples, a constant on {best:.2f}")
            else:
                error = (outputs[:, 0] - y).square().mean()
                self.holds(error < y.var(), f"its squared error is {error:.3g}, a constant's {y.var():.3g}")

    def test_a_class_may_have_no_example(self) -> None:
        """A class without a labelled example has a finite output, and is not the answer."""
        for task in (task for task in self.tasks() if task.kind == "classification"):
            x, y = toy.numbers(_ROWS, toy.WIDTH), toy.labels(task, _ROWS) % (task.classes - 1)
            outputs = torch.from_numpy(np.asarray(self.component.fit(x.numpy(), y.numpy(), task, 1)(x.numpy())))
            self.has_shape(outputs, (_ROWS, task.classes), "the outputs without examples of the last class")
            self.is_finite(outputs, "the outputs without examples of the last class")
            self.holds((outputs.argmax(1) < task.classes - 1).all(), "its answer is a class without examples")

    def test_takes_bags_of_words(self) -> None:
        """A CSR matrix gives the outputs of the same numbers in an array, up to rounding."""
        from scipy.sparse import csr_matrix

        for task in self.tasks():
            x, y = toy.bag(_ROWS, toy.WIDTH).to_dense().numpy(), toy.labels(task, _ROWS).numpy()
            forms: tuple[Inputs, ...] = (x, csr_matrix(x))
            plain, sparse = (torch.from_numpy(np.asarray(self.component.fit(form, y, task, 1)(form))) for form in forms)
            self.close(sparse, plain, "bags of words give other outputs than the same numbers", 1e-3)

    def test_sees_no_target_label(self) -> None:
        """Inverting the target's labels does not change a bit of what the engine records, except the test.

        The clause does not apply to a scheme that declares `needs_target_labels`, an oracle.
        """
        if self.component.needs_target_labels:
            raise unittest.SkipTest(f"{self.who} declares that it needs the target's labels")
        for task in self.tasks():
            blobs = (toy.Blobs(regression=task.kind == "regression", poison=poison) for poison in (False, True))
            parts = self.component, toy.WeightedMeans(), toy.Mean(), 0.0
            (clean,), (poisoned,) = (trained(*parts, data) for data in blobs)
            same = (clean.status, clean.curves, clean.validation) == (
                poisoned.status, poisoned.curves, poisoned.validation
            )  # fmt: skip
            self.holds(same, f"inverting the target's labels ({task.kind}) changes the run")

    def _call(self, task: Task) -> Call:
        x, y = toy.numbers(_ROWS, toy.WIDTH), toy.labels(task, _ROWS)

        def outputs() -> dict[str, Tensor]:
            made = self.component.fit(x.numpy(), y.numpy(), task, 3)(x.numpy())
            return {f"outputs ({task.kind})": torch.from_numpy(np.array(made))}

        return Call(outputs, {"x": x, "y": y})
