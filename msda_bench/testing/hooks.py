"""The clauses on a scheme's hooks other than its step: what it carries and what it predicts."""

from __future__ import annotations

import unittest
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from msda_bench.api import Aggregator, Discrepancy, Phase, Scheme, SourcePass, Stage, TargetPass, Task
from msda_bench.engine.carried import HOOKS, overrides
from msda_bench.store.record import Record
from msda_bench.testing import toy
from msda_bench.testing.component import TaskContract, brief
from msda_bench.testing.trial import SOURCES, ToyRun, trained

_CLOSE = 1e-3
"""Largest difference between a score of a stacked run and of the run alone, after six steps."""


class HooksContract(TaskContract):
    """What a scheme promises about `carry`, `at_stage`, `after_step`, `at_epoch`, `predict` and its stages."""

    component: ClassVar[Scheme]
    discrepancy: ClassVar[Discrepancy] = toy.WeightedMeans()
    aggregator: ClassVar[Aggregator] = toy.Mean()
    mu: ClassVar[float] = 0.1

    @property
    def phases(self) -> list[Phase]:
        """The phases of all stages, in order."""
        return [phase for stage in self.component.stages for phase in stage.phases]

    def run(
        self, sources: int = 3, task: Task | None = None, seed: int = 0, discrepancy: Discrepancy | None = None
    ) -> ToyRun:
        """A run of a small network; its task defaults to the first that the scheme supports."""
        parts = self.component, discrepancy or self.discrepancy, self.aggregator
        return ToyRun(*parts, self.mu, SOURCES[:sources], task or self.tasks()[0], seed)

    def trained(self, blobs: toy.Blobs, runs: int = 1) -> list[Record]:
        """Records of short runs trained by the engine; several runs form a stack."""
        return trained(self.component, self.discrepancy, self.aggregator, self.mu, blobs, runs)

    def test_predicts_each_example_by_itself(self) -> None:
        """Each example has one finite row of features and outputs, which does not depend on the rest of the batch."""
        run = self.run().eval()
        carried, x = run.carried(self.component.stages[-1]), toy.numbers(6, toy.WIDTH, stream=3)
        for place, what in enumerate(("features", "outputs")):
            whole, first = (run("predict", {}, rows, carried)[place] for rows in (x, x[:2]))
            width = whole.shape[1:2] if what == "features" else (run.task.outputs,)
            self.has_shape(whole, (len(x), *width), f"the predicted {what}")
            self.is_finite(whole, f"the predicted {what}")
            self.close(first, whole[:2], f"an example's predicted {what} depend on the rest of the batch")

    def test_carries_what_it_started_with(self) -> None:
        """All hooks return new tensors with the names, shapes and dtypes from `carry`."""
        for stage in self.component.stages:
            run = self.run()
            for phase in stage.phases:
                found = dict(run.step(phase).carried)
                given = run.given(phase)
                with self.unchanged(given), torch.no_grad():
                    found |= run("after_step", given, phase)
                self._check_carried(found, run.carried(stage), f"in phase {phase.name!r}")
            for hook, right in (("at_stage", "sources"), ("at_epoch", "target")):
                if right in stage.sees:
                    self._check_pass(hook, run, stage)

    def test_stacked_training_equals_each_alone(self) -> None:
        """Two runs with hooks other than the step give equal scores when trained in a stack and alone."""
        self.must_stack()
        if not any(overrides(self.component, hook) for hook in (*HOOKS, "predict")):
            raise unittest.SkipTest(f"{self.who} has no hook other than its step")
        blobs = toy.Blobs(regression=self.tasks()[0].kind == "regression")
        alone, together = self.trained(blobs)[0], self.trained(blobs, 2)[0]
        note = together.provenance.get("stack_note")
        self.holds(note is None, f"it trains alone, not in a stack: {note}")
        for name, value in alone.validation.items():
            found = torch.tensor([together.validation.get(name, torch.nan), value])
            near = abs(float(found[0] - found[1])) <= _CLOSE * max(1.0, abs(value))
            self.holds(near, f"stacking changes a run's predictions: {brief(found)}")

    def _check_pass(self, hook: str, run: ToyRun, stage: Stage) -> None:
        run.eval()
        carried, key = run.carried(stage), torch.tensor([3, 7], dtype=torch.int32)
        n = run.sizes.target if hook == "at_epoch" else sum(run.sizes.groups)
        with torch.no_grad():
            features, outputs = run("predict", {}, toy.numbers(n, toy.WIDTH, stream=4), carried)
            target = TargetPass(features, outputs, key, torch.tensor(0.5))
            groups = torch.arange(len(run.groups)).repeat_interleave(torch.tensor(run.sizes.groups))
            sources = SourcePass(features, outputs, toy.labels(run.task, n, stream=4), groups, key)
            seen = target if hook == "at_epoch" else sources
            with self.unchanged({**seen._asdict(), **carried}):
                found = run(hook, {}, seen, carried, stage)
        self._check_carried(found, carried, f"in {hook}")

    def _check_carried(self, found: Mapping[str, Tensor], carried: Mapping[str, Tensor], where: str) -> None:
        for name, value in found.items():
            what = f"the carried {name!r} {where}"
            self.holds(name in carried, f"{where} it returns {name!r} to carry, which `carry` did not name")
            self.has_shape(value, tuple(carried[name].shape), what)
            before, after = carried[name].dtype, value.dtype
            self.holds(after == before, f"the dtype of {what} changes from {before} to {after}")
            self.is_finite(value, what)
