"""The contract of schemes."""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor, nn

from msda_bench.api import Group, Phase, PluginError, Scheme, Step, Task
from msda_bench.store.record import Record
from msda_bench.testing import toy
from msda_bench.testing.component import RUNS, Call
from msda_bench.testing.hooks import HooksContract
from msda_bench.testing.trial import SOURCES, TARGET, ToyRun

PARTS: Group = ("north/0", "north/1", "east/0", "east/1", f"{TARGET}/labelled")
"""Parts of split sources, and some labelled examples of the target."""


class SchemeContract(HooksContract):
    """What every scheme promises.

    Attributes:
        component: the scheme under test.
        discrepancy: the discrepancy in the tests, if the scheme uses one.
        aggregator: the aggregator in the tests, if the scheme uses a discrepancy.
        mu: the weight of the gaps in the tests.
    """

    component: ClassVar[Scheme]
    draws: ClassVar[str] = (
        "draw with msda_bench.functional.uniform from the batch's key; for dropout use msda_bench.api.Dropout in place "
        "of torch.nn.Dropout"
    )

    def calls(self) -> Iterator[Call]:
        """One step of each phase."""
        return map(self._call, self.phases)

    def test_groups_hold_known_domains(self) -> None:
        """Groups contain only known sources, and the target only if the scheme sets `needs_target_labels`."""
        for sources in (SOURCES, PARTS):
            self._check_groups(sources)

    def test_epoch_has_steps(self) -> None:
        """An epoch has a whole number of steps, at least one, even if the batch is larger than the data."""
        groups = self.component.groups(SOURCES, TARGET)
        for size, batch in ((100, 20), (3, 20)):
            steps = self.component.steps(tuple((size,) * len(group) for group in groups), batch)
            failure = f"an epoch has {steps!r} steps; the contract asks for a whole number of at least 1"
            self.holds(type(steps) is int and steps >= 1, failure)

    def test_critic_is_its_own(self) -> None:
        """The critic shares no parameter with the network, since phases train whole parts."""
        parts = self.run().parts
        network = {id(value) for name in ("features", "predictor") for value in parts[name].parameters()}
        shared = [name for name, value in parts["critic"].named_parameters() if id(value) in network]
        advice = (
            "the contract asks for separate parameters (msda_bench.api.fresh_copy makes a new module of equal shape)"
        )
        self.holds(not shared, f"the critic's {', '.join(shared)} belong to the network; {advice}")

    def test_step_gives_what_the_record_holds(self) -> None:
        """The objective is a finite scalar; risks, gaps and weights, if given, are (k,), the weights on the simplex."""
        for sources in (1, 3):
            for task in self.tasks():
                run = self.run(sources, task)
                for phase in self.phases:
                    self._check_step(run, phase)

    def test_trains_without_a_discrepancy(self) -> None:
        """With a discrepancy that ignores the target, such as `none`, it takes a step or refuses to be built."""
        if not self.component.uses_discrepancy:
            raise unittest.SkipTest(f"{self.who} takes no discrepancy")
        try:
            run = self.run(discrepancy=toy.Blind())
        except PluginError as error:
            raise unittest.SkipTest(f"{self.who} refuses it: {error}") from error
        for phase in self.phases:
            try:
                run.step(phase)
            except Exception as error:
                why = f"{type(error).__name__}: {' '.join(str(error).split())}"
                raise AssertionError(
                    f"{self.who}: phase {phase.name!r} fails with a discrepancy that ignores the target: {why}. No "
                    "target batch is drawn in this case; the contract asks for a step without one, or for "
                    "`needs_target = True`"
                ) from error

    def test_gradient_reaches_what_a_phase_trains(self) -> None:
        """Each phase gives a finite gradient to the parts that it trains; some phase gives one to the features."""
        reached = set()
        for phase in self.phases:
            run = self.run()
            torch.autograd.backward(run.step(phase).objective)
            for name in phase.trains:
                gradients = [parameter.grad for parameter in self._part(run, name).parameters()]
                given = [gradient for gradient in gradients if gradient is not None]
                idle = f"phase {phase.name!r} declares that it trains {name}, but gives it no gradient"
                self.holds(given or not gradients, idle)
                for gradient in given:
                    self.is_finite(gradient, f"a gradient of {name} in phase {phase.name!r}")
                if given:  # may be zero at first, e.g. if a gate rejects uncertain predictions
                    reached.add(name)
        self.holds("features" in reached, "no phase gives the features a gradient, so nothing would be learned")

    def test_sees_no_target_label(self) -> None:
        """Inverting the target's labels does not change a bit of what the engine trains.

        The clause does not apply to a scheme that declares `needs_target_labels`, an oracle.
        """
        if self.component.needs_target_labels:
            raise unittest.SkipTest(f"{self.who} declares that it needs the target's labels")
        for task in self.tasks():
            clean, poisoned = (self._trained(task, poison=poison) for poison in (False, True))
            for what in ("status", "curves", "validation"):
                same = getattr(clean, what) == getattr(poisoned, what)
                differ = f"inverting the target's labels ({task.kind}) changes the run's {what}"
                self.holds(same, f"{differ}; the contract asks to train without them")

    def test_leaves_the_process_alone(self) -> None:
        """It changes no global random generator, default dtype, number of threads or gradient mode."""
        with self.leaves_alone(torch_generator=False):
            self.run()
        super().test_leaves_the_process_alone()

    def test_stacked_runs_equal_each_alone(self) -> None:
        """Each run of a stack gets the objective, weights and gradient that it gets alone."""
        self.must_stack()
        runs = [self.run(seed=seed) for seed in range(RUNS)]
        for phase in self.phases:
            given = [run.given(phase) for run in runs]
            inputs = {name: torch.stack([one[name] for one in given]) for name in given[0]}
            step, parameters = self.stacked(runs, "step", inputs, phase)
            weight = parameters["parts.features.0.weight"]
            gradients = torch.autograd.grad(step.objective.sum(), weight, materialize_grads=True)[0]
            for run, objective, weights, gradient in zip(runs, step.objective, step.weights, gradients, strict=True):
                alone = run.step(phase)
                own = run.feature_gradient(alone.objective)
                self.close(objective, alone.objective, "stacking changes a run's objective", 1e-4)
                self.close(weights, alone.weights, "stacking changes a run's weights", 1e-4)
                self.close(gradient, own, "stacking changes a run's gradient", 1e-4)

    def _call(self, phase: Phase) -> Call:
        run = self.run()
        given = run.given(phase)

        def outputs() -> dict[str, Tensor]:
            *named, carried = run("step", given, phase)
            return {**dict(zip(Step._fields, named, strict=False)), **carried}

        return Call(outputs, given)

    def _trained(self, task: Task, *, poison: bool) -> Record:
        return self.trained(toy.Blobs(regression=task.kind == "regression", poison=poison))[0]

    def _check_groups(self, sources: Group) -> None:
        groups = self.component.groups(sources, TARGET)
        self.holds(groups, "it has no group to draw from; the contract asks for at least one")
        for group in groups:
            self.holds(group, f"it has an empty group: {groups}")
            unknown = set(group) - {*sources, TARGET}
            self.holds(not unknown, f"it draws from {sorted(unknown)}; there are only {sources} and {TARGET!r}")
            honest = TARGET not in group or self.component.needs_target_labels
            self.holds(honest, "it draws labels of the target; an oracle must set `needs_target_labels = True`")

    def _check_step(self, run: ToyRun, phase: Phase) -> None:
        k = len(run.groups)
        where = f"with {k} groups, {run.task.kind}, phase {phase.name!r}"
        step = run.step(phase)
        for what, shape in {"objective": (), "risks": (k,), "gaps": (k,)}.items():
            given = getattr(step, what)
            if what == "objective" or given.shape != (0,):
                self.has_shape(given, shape, f"the {what} {where}")
                self.is_finite(given, f"the {what} {where}")
        self.carries_gradient(step.objective, f"the objective {where}")
        if step.weights.shape != (0,):
            self.on_simplex(step.weights, k, f"the weights {where}")
        if step.state.shape != (0,):
            self.has_shape(step.state, tuple(run.state.shape), f"the state {where}")

    def _part(self, run: ToyRun, name: str) -> nn.Module:
        self.holds(name in run.parts, f"a phase trains {name!r}; the parts are {', '.join(run.parts)}")
        return run.parts[name]
