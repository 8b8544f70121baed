"""The clauses on a scheme's hooks beside its step: what it carries, and what it predicts."""

from __future__ import annotations

import unittest
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from msda_bench.api import Aggregator, Discrepancy, Phase, Scheme, Stage, TargetPass, Task
from msda_bench.engine.carried import overrides
from msda_bench.store.record import Record
from msda_bench.testing import toy
from msda_bench.testing.component import TaskContract, brief
from msda_bench.testing.trial import SOURCES, ToyRun, trained

_CLOSE = 1e-3
"""Largest difference of a stacked run's numbers, after six steps."""


class HooksContract(TaskContract):
    """What a scheme promises of `carry`, `after_step`, `at_epoch`, `predict` and its stages."""

    component: ClassVar[Scheme]
    discrepancy: ClassVar[Discrepancy] = toy.WeightedMeans()
    aggregator: ClassVar[Aggregator] = toy.Mean()
    mu: ClassVar[float] = 0.1

    @property
    def phases(self) -> list[Phase]:
        """Of all stages."""
        return [phase for stage in self.component.stages for phase in stage.phases]

    def run(
        self, sources: int = 3, task: Task | None = None, seed: int = 0, discrepancy: Discrepancy | None = None
    ) -> ToyRun:
        """A run of a small network, on the first task that it trains unless one is given."""
        parts = self.component, discrepancy or self.discrepancy, self.aggregator
        return ToyRun(*parts, self.mu, SOURCES[:sources], task or self.tasks()[0], seed)

    def trained(self, blobs: toy.Blobs, runs: int = 1) -> list[Record]:
        """Records of short runs by the engine, stacked if there are several."""
        return trained(self.component, self.discrepancy, self.aggregator, self.mu, blobs, runs)

    def test_predicts_each_example_by_itself(self) -> None:
        """Predicted features and outputs are one finite row an example, whichever examples are beside it."""
        run = self.run().eval()
        carried, x = run.carried(self.component.stages[-1]), toy.numbers(6, toy.WIDTH, stream=3)
        for place, what in enumerate(("features", "outputs")):
            whole, first = (run("predict", {}, rows, carried)[place] for rows in (x, x[:2]))
            width = whole.shape[1:2] if what == "features" else (run.task.outputs,)
            self.has_shape(whole, (len(x), *width), f"the predicted {what}")
            self.is_finite(whole, f"the predicted {what}")
            self.close(first, whole[:2], f"an example's predicted {what} depend on the examples beside it")

    def test_carries_what_it_started_with(self) -> None:
        """`step`, `after_step` and `at_epoch` give new tensors of the names, shapes and dtypes that `carry` gave."""
        for stage in self.component.stages:
            run = self.run()
            for phase in stage.phases:
                found = dict(run.step(phase).carried)
                given = run.given(phase)
                with self.unchanged(given), torch.no_grad():
                    found |= run("after_step", given, phase)
                self._check_carried(found, run.carried(stage), f"in phase {phase.name!r}")
            if "target" in stage.sees:
                self._check_epoch(run, stage)

    def test_stacked_training_equals_each_alone(self) -> None:
        """Two short runs with hooks beside the step, trained by the engine in a stack, predict as each alone."""
        self.must_stack()
        if not any(overrides(self.component, hook) for hook in ("carry", "after_step", "at_epoch", "predict")):
            raise unittest.SkipTest(f"{self.who} has no hook but its step")
        blobs = toy.Blobs(regression=self.tasks()[0].kind == "regression")
        alone, together = self.trained(blobs)[0], self.trained(blobs, 2)[0]
        note = together.provenance.get("stack_note")
        self.holds(note is None, f"it trains alone, not in a stack: {note}")
        for name, value in alone.validation.items():
            found = torch.tensor([together.validation.get(name, torch.nan), value])
            near = abs(float(found[0] - found[1])) <= _CLOSE * max(1.0, abs(value))
            self.holds(near, f"a stacked run predicts otherwise than alone: {brief(found)}")

    def _check_epoch(self, run: ToyRun, stage: Stage) -> None:
        run.eval()
        carried = run.carried(stage)
        with torch.no_grad():
            seen = run("predict", {}, toy.numbers(run.sizes.target, toy.WIDTH, stream=4), carried)
            key = torch.tensor([3, 7], dtype=torch.int32)
            target = TargetPass(seen[0], seen[1], key, torch.tensor(0.5))
            given = {"features": target.features, "outputs": target.outputs, "key": key, **carried}
            with self.unchanged(given):
                found = run("at_epoch", {}, target, carried, stage)
        self._check_carried(found, carried, "at an epoch")

    def _check_carried(self, found: Mapping[str, Tensor], carried: Mapping[str, Tensor], where: str) -> None:
        for name, value in found.items():
            known = f"{where} it gives {name!r} to carry, which `carry` did not name in that stage"
            self.holds(name in carried, known)
            self.has_shape(value, tuple(carried[name].shape), f"what it carries as {name!r} {where}")
            kinds = value.dtype, carried[name].dtype
            self.holds(kinds[0] == kinds[1], f"what it carries as {name!r} {where} is {kinds[0]}, and was {kinds[1]}")
            self.is_finite(value, f"what it carries as {name!r} {where}")
