"""The contract of schemes."""

from __future__ import annotations

import unittest
from typing import ClassVar

import torch
from torch import nn

from msda_bench.api import Aggregator, Discrepancy, Group, Phase, PluginError, Scheme, Task
from msda_bench.store.record import Record
from msda_bench.testing import toy
from msda_bench.testing.claims import carries_gradient, close, equal, has_shape, is_finite, on_simplex
from msda_bench.testing.component import ComponentContract
from msda_bench.testing.guard import leaves_alone
from msda_bench.testing.stack import RUNS
from msda_bench.testing.toyrun import SOURCES, TARGET, ToyRun, stacked_step
from msda_bench.testing.trial import Blobs, trained

PARTS: Group = ("north/0", "north/1", "east/0", "east/1", f"{TARGET}/labelled")
"""Sources as a suite may split them, with some labelled examples of the target."""


class SchemeContract(ComponentContract):
    """What every scheme promises.

    Attributes:
        component: the scheme under test.
        discrepancy: given to it, if it takes one.
        aggregator: given to it, if it takes a discrepancy.
        mu: the weight of the gaps in the tests.
    """

    component: ClassVar[Scheme]
    discrepancy: ClassVar[Discrepancy] = toy.WeightedMeans()
    aggregator: ClassVar[Aggregator] = toy.Mean()
    mu: ClassVar[float] = 0.1

    def tasks(self) -> list[Task]:
        """A task of each kind that it trains."""
        return [task for task in toy.TASKS if task.kind in self.component.tasks]

    def run(self, sources: int = 3, task: Task | None = None, seed: int = 0) -> ToyRun:
        """A run of a small network, on the first task that it trains unless one is given."""
        task = task or self.tasks()[0]
        return ToyRun.start(self.component, self.discrepancy, self.aggregator, self.mu, SOURCES[:sources], task, seed)

    def test_groups_hold_known_domains(self) -> None:
        """Groups are of sources; the target is in one only if the scheme asks for its labels by name."""
        for sources in (SOURCES, PARTS):
            self._check_groups(sources)

    def test_tasks_are_known(self) -> None:
        """It trains classification, regression or both."""
        tasks = self.component.tasks
        known = {task.kind for task in toy.TASKS}
        right = bool(tasks) and isinstance(tasks, tuple) and set(tasks) <= known
        assert right, f"{self.who}: tasks is {tasks!r}; the contract asks for a tuple of {' and '.join(sorted(known))}"

    def test_epoch_has_steps(self) -> None:
        """An epoch has a whole number of steps, at least one, also when the batch is larger than the data."""
        groups = self.component.groups(SOURCES, TARGET)
        for size, batch in ((100, 20), (3, 20)):
            steps = self.component.steps(tuple((size,) * len(group) for group in groups), batch)
            right = type(steps) is int and steps >= 1
            assert right, f"{self.who}: {steps!r} steps in an epoch; the contract asks for a whole number of at least 1"

    def test_critic_is_its_own(self) -> None:
        """The critic shares no parameter with the network, since each part is trained as one."""
        modules = self.run().modules
        network = {id(value) for name in ("features", "predictor") for value in modules[name].parameters()}
        shared = [name for name, value in modules["critic"].named_parameters() if id(value) in network]
        assert not shared, (
            f"{self.who}: the critic's {', '.join(shared)} belong to the network; the contract asks for parameters of "
            "its own (msda_bench.api.fresh_copy makes a module of the same shape)"
        )

    def test_step_gives_what_the_record_holds(self) -> None:
        """A step gives a finite scalar objective and (k,) risks, gaps and weights, the weights on the simplex."""
        for sources in (1, 3):
            for task in self.tasks():
                run = self.run(sources, task)
                for phase in self.component.phases:
                    self._check_step(run, phase)

    def test_trains_without_a_discrepancy(self) -> None:
        """With a discrepancy that looks at no target, as `none` does, it takes a step, or refuses to be built."""
        if not self.component.uses_discrepancy:
            raise unittest.SkipTest(f"{self.who} takes no discrepancy")
        try:
            run = ToyRun.start(self.component, toy.Blind(), self.aggregator, self.mu, SOURCES, self.tasks()[0], seed=0)
        except PluginError as error:
            raise unittest.SkipTest(f"{self.who} refuses it: {error}") from error
        for phase in self.component.phases:
            try:
                run.step(phase)
            except Exception as error:
                where = f"with a discrepancy that looks at no target, phase {phase.name!r}"
                raise AssertionError(
                    f"{self.who} takes no step {where}: {type(error).__name__}: {' '.join(str(error).split())}. No "
                    "batch of the target is drawn then; the contract asks for a step without one, or for "
                    "`needs_target = True`"
                ) from error

    def test_gradient_reaches_what_a_phase_trains(self) -> None:
        """Each part that a phase trains gets a finite gradient, if it has parameters; the features get one in some."""
        reached = set()
        for phase in self.component.phases:
            run = self.run()
            torch.autograd.backward(run.step(phase).objective)
            for name in phase.trains:
                gradients = [parameter.grad for parameter in self._part(run, name).parameters()]
                given = [gradient for gradient in gradients if gradient is not None]
                assert given or not gradients, (
                    f"{self.who}: phase {phase.name!r} says it trains {name}, but gives it no gradient"
                )
                for gradient in given:
                    is_finite(gradient, f"{self.who}: a gradient of {name} in phase {phase.name!r}")
                if any(gradient.any() for gradient in given):
                    reached.add(name)
        assert "features" in reached, f"{self.who}: no phase gives the features a gradient; nothing would be learned"

    def test_sees_no_target_label(self) -> None:
        """Trained by the engine on domains whose target labels are inverted, it learns the same to the last bit.

        A scheme that declares `needs_target_labels`, an oracle, is let off.
        """
        if self.component.needs_target_labels:
            raise unittest.SkipTest(f"{self.who} declares that it needs the target's labels")
        for task in self.tasks():
            clean, poisoned = (self._trained(task, poison=poison) for poison in (False, True))
            for what in ("status", "curves", "validation"):
                same = getattr(clean, what) == getattr(poisoned, what)
                assert same, (
                    f"{self.who}: with the target's labels inverted ({task.kind}) the run's {what} differ; the "
                    "contract asks to train without them"
                )

    def test_is_deterministic(self) -> None:
        """A step depends on its batch, key and state alone."""
        run = self.run()
        for phase in self.component.phases:
            first, second = run.step(phase), run.step(phase)
            equal(second.objective, first.objective, f"{self.who}: the same step twice has another objective")
            equal(second.weights, first.weights, f"{self.who}: the same step twice has other weights")

    def test_leaves_the_process_alone(self) -> None:
        """No global random generator, default dtype, number of threads or gradient mode is touched."""
        with leaves_alone(self.who, torch_generator=False):
            run = self.run()
        for phase in self.component.phases:
            with leaves_alone(self.who):
                run.step(phase)

    def test_input_is_not_changed(self) -> None:
        """The batch and the state are left as they were."""
        run = self.run()
        kept = [tensor.clone() for tensor in run.inputs]
        for phase in self.component.phases:
            run.step(phase)
        for now, then in zip(run.inputs, kept, strict=True):
            equal(now, then, f"{self.who} changed its batch or state in place; the contract asks for new tensors")

    def test_stacked_runs_equal_each_alone(self) -> None:
        """A stack of runs gives each the objective, weights and gradient that it gets alone."""
        if not self.component.stackable:
            raise unittest.SkipTest(f"{self.who} says that it cannot be stacked")
        runs = [self.run(seed=seed) for seed in range(RUNS)]
        for phase in self.component.phases:
            objectives, weights, gradients = stacked_step(self.who, runs, phase)
            for run, objective, weight, gradient in zip(runs, objectives, weights, gradients, strict=True):
                alone = run.step(phase)
                close(objective, alone.objective, f"{self.who}: a stacked run has another objective than alone", 1e-4)
                close(weight, alone.weights, f"{self.who}: a stacked run has other weights than alone", 1e-4)
                own = run.feature_gradient(alone.objective)
                close(gradient, own, f"{self.who}: a stacked run has another gradient than alone", 1e-4)

    def _trained(self, task: Task, *, poison: bool) -> Record:
        blobs = Blobs(regression=task.kind == "regression", poison=poison)
        return trained(self.component, self.discrepancy, self.aggregator, self.mu, blobs)

    def _check_groups(self, sources: Group) -> None:
        groups = self.component.groups(sources, TARGET)
        assert groups, f"{self.who} draws from no group; the contract asks for at least one"
        for group in groups:
            assert group, f"{self.who} has a group without domains: {groups}"
            unknown = set(group) - {*sources, TARGET}
            assert not unknown, f"{self.who} draws from {sorted(unknown)}; there are only {sources} and {TARGET!r}"
            honest = TARGET not in group or self.component.needs_target_labels
            assert honest, f"{self.who} draws labels of the target; one that must, sets `needs_target_labels = True`"

    def _check_step(self, run: ToyRun, phase: Phase) -> None:
        where = f"with {len(run.groups)} groups, {run.task.kind}, phase {phase.name!r}"
        step = run.step(phase)
        has_shape(step.objective, (), f"{self.who}: the objective {where}")
        is_finite(step.objective, f"{self.who}: the objective {where}")
        carries_gradient(step.objective, f"{self.who}: the objective {where}")
        for what, found in {"risks": step.risks, "gaps": step.gaps}.items():
            has_shape(found, (len(run.groups),), f"{self.who}: the {what} {where}")
            is_finite(found, f"{self.who}: the {what} {where}")
        on_simplex(step.weights, len(run.groups), f"{self.who}: the weights {where}")
        has_shape(step.state, tuple(run.state.shape), f"{self.who}: the state {where}")

    def _part(self, run: ToyRun, name: str) -> nn.Module:
        known = ", ".join(run.modules)
        assert name in run.modules, f"{self.who}: a phase trains {name!r}; the parts are {known}"
        return run.modules[name]
