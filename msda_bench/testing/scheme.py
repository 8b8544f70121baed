"""The contracts of schemes that train in steps, and of predictors."""

from __future__ import annotations

import unittest
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import (
    Aggregator,
    Array,
    Component,
    Discrepancy,
    FitData,
    Group,
    Inputs,
    Phase,
    PluginError,
    Predictor,
    Scheme,
    SchemeBase,
    Step,
    Task,
)
from msda_bench.errors import describe
from msda_bench.plugins import Entry, Registry
from msda_bench.store.record import Record
from msda_bench.suite.choice import Configured
from msda_bench.suite.protocol import Adam, Optimizer, TrainingConfig
from msda_bench.suite.run_spec import RunSpec
from msda_bench.testing import toy
from msda_bench.testing.broken import BrokenContractError
from msda_bench.testing.component import Call, TaskContract
from msda_bench.testing.toy import SOURCES, TARGET, ToyRun

PARTS: Group = ("north/0", "north/1", "east/0", "east/1", f"{TARGET}/labelled")
"""Parts of split sources, and some labelled examples of the target."""
_CLOSE = 1e-3
"""Largest difference between a score of a stacked run and of the run alone, after six steps."""
_ROWS = 90


class _TrainedContract(TaskContract):
    component: ClassVar[SchemeBase]
    discrepancy: ClassVar[Discrepancy] = toy.WeightedMeans()
    aggregator: ClassVar[Aggregator] = toy.Mean()
    mu: ClassVar[float] = 0.1

    def trained(
        self,
        blobs: toy.Blobs,
        runs: int = 1,
        device: str = "cpu",
        scheme: Component | None = None,
    ) -> list[Record]:
        """The records of runs of two epochs of three steps, trained by the engine in one stack.

        They are of another scheme than the one under test if it is given.
        """
        from msda_bench.data import LocalFiles
        from msda_bench.engine.train import Trainer

        parts: list[Component] = [blobs, toy.OneLayer(), scheme or self.component, toy.MeanOutput()]
        parts += [self.discrepancy, self.aggregator] if self.component.uses_discrepancy else []
        entries = [Entry(part.kind, type(part), "msda-bench-testing", "0") for part in parts]
        specs = {part.kind: Configured(entry, part, {}).spec for entry, part in zip(entries, parts, strict=True)}
        cell = RunSpec(
            dataset=specs["dataset"],
            fingerprint=blobs.fingerprint(),
            target="aim",
            sources=("one", "two"),
            backbone=specs["backbone"],
            scheme=specs["scheme"],
            discrepancy=specs.get("discrepancy"),
            aggregator=specs.get("aggregator"),
            mu=self.mu,
            training=TrainingConfig(
                epochs=2, batch=10, steps=3, optimizer=Optimizer(adam=Adam(lr=0.01)), epoch="scheme"
            ),
            validators=(specs["validator"],),
            seed=0,
        )
        cells = [replace(cell, seed=seed) for seed in range(runs)]
        return list(Trainer(Registry(entries), LocalFiles(), device, runs).train(cells))

    @abstractmethod
    def predictor(self, task: Task) -> Callable[[Tensor], Mapping[str, Tensor]]:
        """What it predicts for examples (n, 6), by name."""

    def test_groups_hold_known_domains(self) -> None:
        """Groups contain only known sources, and the target only if the scheme sets `needs_target_labels`."""
        for sources in (SOURCES, PARTS):
            groups = self.component.groups(sources, TARGET)
            self.holds(groups, "it has no group to draw from; the contract asks for at least one")
            for group in groups:
                self.holds(group, f"it has an empty group: {groups}")
                unknown = set(group) - {*sources, TARGET}
                self.holds(not unknown, f"it draws from {sorted(unknown)}; there are only {sources} and {TARGET!r}")
                honest = TARGET not in group or self.component.needs_target_labels
                self.holds(honest, "it draws labels of the target; an oracle must set `needs_target_labels = True`")

    def test_predicts_each_example_by_itself(self) -> None:
        """Each example has one finite row of predictions, which does not depend on the rest of the batch."""
        for task in self.tasks():
            predict = self.predictor(task)
            x = toy.numbers(6, toy.WIDTH, stream=3)
            whole = predict(x)
            first = predict(x[:2])
            for what, rows in whole.items():
                width = rows.shape[1:2] if what == "features" else (task.outputs,)
                self.is_sound(rows, (len(x), *width), f"the predicted {what}")
                failure = f"an example's predicted {what} depend on the rest of the batch"
                self.close(first[what], rows[:2], failure)

    def test_sees_no_target_label(self) -> None:
        """Inverting the target's labels does not change a bit of what the engine trains.

        The clause does not apply to a scheme that declares `needs_target_labels`, an oracle.
        """
        self.applies(not self.component.needs_target_labels, "declares that it needs the target's labels")
        for task in self.tasks():
            regression = not task.has_classes
            clean, poisoned = (self.trained(toy.Blobs(regression=regression, poison=to))[0] for to in (False, True))
            for what in ("status", "curves", "validation"):
                same = getattr(clean, what) == getattr(poisoned, what)
                differ = f"inverting the target's labels ({task.kind}) changes the run's {what}"
                self.holds(same, f"{differ}; the contract asks to train without them")


class SchemeContract(_TrainedContract):
    """What every scheme that takes steps promises.

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

    @property
    def phases(self) -> list[Phase]:
        """The phases of all stages, in order."""
        return [phase for stage in self.component.stages for phase in stage.phases]

    def run(
        self,
        sources: int = 3,
        task: Task | None = None,
        discrepancy: Discrepancy | None = None,
    ) -> ToyRun:
        """A run of a small network; its task defaults to the first that the scheme supports."""
        parts = self.component, discrepancy or self.discrepancy, self.aggregator
        return ToyRun(*parts, self.mu, SOURCES[:sources], task or self.tasks()[0])

    def predictor(self, task: Task) -> Callable[[Tensor], Mapping[str, Tensor]]:
        """The features and outputs of a run after its last stage has begun."""
        run = self.run(task=task)
        run.modules.eval()
        carried = run.carried(self.component.stages[-1])
        return lambda x: dict(zip(("features", "outputs"), self.component.predict(run.parts, x, carried), strict=True))

    def calls(self) -> Iterator[Call]:
        """One step of each phase."""
        return map(self._call, self.phases)

    def test_critic_is_its_own(self) -> None:
        """The critic shares no parameter with the network, since phases train whole parts."""
        modules = self.run().modules
        network = {id(value) for name in ("features", "predictor") for value in modules[name].parameters()}
        shared = [name for name, value in modules["critic"].named_parameters() if id(value) in network]
        asked = "for separate parameters (msda_bench.api.fresh_copy makes a new module of equal shape)"
        self.holds(not shared, f"the critic's {', '.join(shared)} belong to the network; the contract asks {asked}")

    def test_step_gives_what_the_record_holds(self) -> None:
        """The objective is a finite scalar; risks, gaps and weights, if given, are (k,), the weights on the simplex."""
        for sources in (1, 3):
            for task in self.tasks():
                run = self.run(sources, task)
                for phase in self.phases:
                    self._check_step(run, phase)

    def test_trains_without_a_discrepancy(self) -> None:
        """With a discrepancy that ignores the target, such as `none`, it takes a step or refuses to be built."""
        self.applies(self.component.uses_discrepancy, "takes no discrepancy")
        try:
            run = self.run(discrepancy=toy.Blind())
        except PluginError as error:
            raise unittest.SkipTest(f"{self.who} refuses it: {error}") from error
        try:
            for phase in self.phases:
                run.step(phase)
        except Exception as error:
            raise BrokenContractError(
                f"{self.who}: a step fails with a discrepancy that ignores the target: {describe(error)}. No target "
                "batch is drawn in this case; the contract asks for a step without one, or for `needs_target = True`"
            ) from error

    def test_gradient_reaches_what_a_phase_trains(self) -> None:
        """Each phase gives a finite gradient to the parts that it trains; some phase gives one to the features."""
        reached = set()
        for phase in self.phases:
            run = self.run()
            torch.autograd.backward(run.step(phase).objective)
            for name in phase.trains:
                self.holds(name in run.modules, f"a phase trains {name!r}; the parts are {', '.join(run.modules)}")
                gradients = [parameter.grad for parameter in run.modules[name].parameters()]
                given = [gradient for gradient in gradients if gradient is not None]
                idle = f"phase {phase.name!r} declares that it trains {name}, but gives it no gradient"
                self.holds(given or not gradients, idle)
                for gradient in given:
                    self.is_sound(gradient, gradient.shape, f"a gradient of {name} in phase {phase.name!r}")
                if given:  # may be zero at first, e.g. if a gate rejects uncertain predictions
                    reached.add(name)
        self.holds("features" in reached, "no phase gives the features a gradient, so nothing would be learned")

    def test_recorded_steps_are_the_hosts(self) -> None:
        """If it is `capturable`: on a GPU, steps that a CUDA graph replays change no bit of the training."""
        device = self.must_replay()
        blobs = toy.Blobs(regression=not self.tasks()[0].has_classes)
        cls = type(self.component)
        not_capturable = type(cls.__name__, (cls,), {"capturable": False})
        by_host = Entry("scheme", not_capturable, "", "").create(self.component.params())
        (asked,) = self.trained(blobs, device=str(device), scheme=by_host)
        (replayed,) = self.trained(blobs, device=str(device))
        same = (asked.status, asked.curves, asked.outcome) == (replayed.status, replayed.curves, replayed.outcome)
        self.holds(same, "it declares `capturable = True`, but replayed steps are not those that the host asks for")

    def test_leaves_the_process_alone(self) -> None:
        """It changes no global random generator, default dtype, number of threads or gradient mode."""
        with self.leaves_alone(torch_generator=False):
            self.run()
        super().test_leaves_the_process_alone()

    def test_stacked_runs_equal_each_alone(self) -> None:
        """A run has equal risks, gaps, weights and scores when it trains in a stack of two and alone."""
        self.must_stack()
        blobs = toy.Blobs(regression=not self.tasks()[0].has_classes)
        alone = self.trained(blobs)[0]
        together = self.trained(blobs, 2)[0]
        note = together.provenance.get("stack_note")
        self.holds(note is None, f"it {self.not_stacked(str(note))}")
        for what in ("risks", "gaps", "weights"):
            one, other = (torch.tensor(getattr(record.curves, what)) for record in (together, alone))
            self.close(one, other, f"stacking changes a run's {what}", _CLOSE)
        for name, value in alone.validation.items():
            one, other = torch.tensor([together.validation.get(name, torch.nan), value])
            self.close(one, other, f"stacking changes a run's score by {name}", _CLOSE)

    def _call(self, phase: Phase) -> Call:
        run = self.run()
        batch = run.batch(phase)

        def outputs() -> dict[str, Tensor]:
            *named, carried = run.step(phase, batch)
            return {**dict(zip(Step._fields, named, strict=False)), **carried}

        given = {f"batch's {name}": value for name, value in {**batch._asdict(), **batch.carried}.items()}
        return Call(outputs, {name: value for name, value in given.items() if isinstance(value, Tensor)})

    def _check_step(self, run: ToyRun, phase: Phase) -> None:
        k = len(run.groups)
        where = f"with {k} groups, {run.task.kind}, phase {phase.name!r}"
        step = run.step(phase)
        for what, shape in {"objective": (), "risks": (k,), "gaps": (k,)}.items():
            given = getattr(step, what)
            if what == "objective" or given.shape != (0,):
                self.is_sound(given, shape, f"the {what} {where}")
        self.holds(step.objective.requires_grad, f"no gradient flows from the objective {where} (was it detached?)")
        if step.weights.shape != (0,):
            self.on_simplex(step.weights, k, f"the weights {where}")
        if step.state.shape != (0,):
            self.is_sound(step.state, tuple(run.state.shape), f"the state {where}")


class PredictorContract(_TrainedContract):
    """What every fitted predictor promises."""

    component: ClassVar[Predictor]
    draws: ClassVar[str] = "draw all random numbers from the seed that `fit` is given"

    def predictor(self, task: Task) -> Callable[[Tensor], Mapping[str, Tensor]]:
        """The outputs after a fit."""
        predict = self._fitted(toy.numbers(_ROWS, toy.WIDTH), toy.labels(task, _ROWS), task)
        return lambda x: {"outputs": predict(x)}

    def calls(self) -> Iterator[Call]:
        """A fit and a prediction of each task."""
        return map(self._call, self.tasks())

    def test_learns(self) -> None:
        """Its outputs for the examples that it was fitted to are better than a constant's, if it uses inputs."""
        self.applies(self.component.uses_inputs, "answers every input alike")
        for task in self.tasks():
            x = toy.numbers(_ROWS, toy.WIDTH)
            y = (task.classes * x[:, 0]).long() if task.has_classes else x[:, 0]
            outputs = self._fitted(x, y, task)(x)
            if task.has_classes:
                best = y.bincount().max() / _ROWS
                right = (outputs.argmax(1) == y).float().mean()
                self.holds(right > best, f"it is right on {right:.2f} of its examples, a constant on {best:.2f}")
            else:
                error = (outputs[:, 0] - y).square().mean()
                self.holds(error < y.var(), f"its squared error is {error:.3g}, a constant's {y.var():.3g}")

    def test_a_class_may_have_no_example(self) -> None:
        """A class without a labelled example has a finite output, and is not the answer."""
        for task in (task for task in self.tasks() if task.has_classes):
            x = toy.numbers(_ROWS, toy.WIDTH)
            y = toy.labels(task, _ROWS) % (task.classes - 1)
            outputs = self._fitted(x, y, task)(x)
            self.is_sound(outputs, (_ROWS, task.classes), "the outputs without examples of the last class")
            self.holds((outputs.argmax(1) < task.classes - 1).all(), "its answer is a class without examples")

    def test_takes_bags_of_words(self) -> None:
        """A CSR matrix gives the outputs of the same numbers in an array, up to rounding."""
        from scipy.sparse import csr_matrix

        for task in self.tasks():
            x = toy.bag(_ROWS, toy.WIDTH).to_dense().numpy()
            y = toy.labels(task, _ROWS).numpy()
            forms: tuple[Inputs, ...] = (x, csr_matrix(x))
            plain, sparse = (torch.from_numpy(np.asarray(self._fit(form, y, task)(form))) for form in forms)
            self.close(sparse, plain, "bags of words give other outputs than the same numbers", 1e-3)

    def _fit(self, x: Inputs, y: Array, task: Task) -> Callable[[Inputs], Array]:
        """Fits to these examples, dealt to the groups in turn, and to a target with equal inputs if it needs one."""
        groups = np.arange(x.shape[0]) % len(self.component.groups(SOURCES, TARGET))
        target = x if self.component.draws_target(None) else x[:0]
        return self.component.fit(FitData(x, y, groups, target), task, 1)

    def _fitted(self, x: Tensor, y: Tensor, task: Task) -> Callable[[Tensor], Tensor]:
        predict = self._fit(x.numpy(), y.numpy(), task)
        return lambda rows: torch.from_numpy(np.array(predict(rows.numpy())))

    def _call(self, task: Task) -> Call:
        x = toy.numbers(_ROWS, toy.WIDTH)
        y = toy.labels(task, _ROWS)
        return Call(lambda: {f"outputs ({task.kind})": self._fitted(x, y, task)(x)}, {"x": x, "y": y})
