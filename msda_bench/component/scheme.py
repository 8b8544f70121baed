"""Schemes: how a method samples and trains; and predictors, which have no network and no steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn

from msda_bench.component.backbone import Network
from msda_bench.component.base import Component
from msda_bench.component.domain_data import Inputs
from msda_bench.component.files import Array
from msda_bench.component.parts import Parts
from msda_bench.component.step import Batch, Carried, Examples, Group, Phase, Sizes, SourcePass, Stage, Step, TargetPass
from msda_bench.component.task import TASK_KINDS, Task
from msda_bench.component.weighing import Discrepancy

_FORMER = {"looks": "uses_inputs", "adds_offsets": "offsets_weights"}
"""Attributes under the names that plugins may give them until 0.2."""


class SchemeBase(Component, ABC):
    """What a suite may name as `scheme`: derive from `Scheme`, which takes steps, or from `Predictor`, which is fitted.

    Attributes:
        uses_discrepancy: whether the suite may name a discrepancy, and an aggregator for it.
        uses_mu: whether mu weighs something; the suite must then set it unless there is nothing to weigh.
        needs_target: whether a batch of the unlabelled target is drawn in every step: True, always; False, never; None,
            unless the discrepancy ignores it (`uses_target = False`), as `none` does. A scheme that uses the target
            even with such a discrepancy sets True; otherwise `Pass.target` may be None.
        needs_target_labels: whether it sees the target's training labels; the record reports it. Only an oracle does.
        target_statistics: whether batch normalisation's running statistics become those of the target's training inputs
            alone when training ends.
        offsets_weights: whether it adds carried values to weights of the same names (`Parts.with_offsets`). Weight
            decay then acts on the sums, and averages of weights (`training: {average: ...}`) are refused.
        uses_inputs: False if its outputs are the same whatever the inputs are. It is then shown as a reference and
            never ranked.
        uses_predictions: whether its outputs are made from the predictions that come with the data
            (`DomainData.predictions`).
        tasks: the kinds of task that it supports.
    """

    kind: ClassVar[str] = "scheme"
    uses_discrepancy: ClassVar[bool] = False
    uses_mu: ClassVar[bool] = False
    needs_target: ClassVar[bool | None] = False
    needs_target_labels: ClassVar[bool] = False
    target_statistics: ClassVar[bool] = False
    offsets_weights: ClassVar[bool] = False
    uses_inputs: ClassVar[bool] = True
    uses_predictions: ClassVar[bool] = False
    tasks: ClassVar[tuple[str, ...]] = tuple(TASK_KINDS)

    def __init_subclass__(cls, **given: Any) -> None:
        """Takes the attributes' former names, too."""
        super().__init_subclass__(**given)
        for former, name in _FORMER.items():
            if former in vars(cls):
                setattr(cls, name, vars(cls)[former])

    @property
    def target_holdout(self) -> float:
        """The share of the target's labelled training examples that it does not train on, in [0, 1).

        Asked of schemes that need target labels. The engine scores them on that part, `target_accuracy` in the record,
        so that their settings need not be selected on the test. Unless overridden it is the parameter `hold_out`, or 0.
        """
        return float(getattr(self, "hold_out", 0.0))

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of a run, in order; none if it takes no steps."""
        return ()

    @property
    def updates(self) -> int:
        """Updates by the optimiser in a training step, one a phase; tables show it unless it is 1.

        The maximum over the stages.
        """
        return max((len(stage.phases) for stage in self.stages), default=1)

    def draws_target(self, discrepancy: Discrepancy | None) -> bool:
        """Whether it sees unlabelled examples of the target: `needs_target`, resolved for the suite's discrepancy."""
        if self.needs_target is not None:
            return self.needs_target
        return discrepancy is None or discrepancy.uses_target

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """The labelled groups, which a scheme draws a batch from in every step; one for each source unless overridden.

        Args:
            sources: their names. If a suite splits the sources these are names of parts, such as books/0; if it asks
                for labelled examples of the target, the last is <target>/labelled.
            target: its name; in no group unless the scheme declares `needs_target_labels`.
        """
        return tuple((source,) for source in sources)


class Scheme(SchemeBase):
    """How a method trains a network in steps; see `SchemeBase` for what it declares."""

    uses_discrepancy = True
    uses_mu = True
    needs_target: ClassVar[bool | None] = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of a run, in order; a single one of one phase, which sees and trains all, unless overridden.

        A scheme whose step has several phases names them in its stage. A source-free method has a stage that sees the
        sources and one that sees only the target.
        """
        return (Stage("all"),)

    def steps(self, sizes: tuple[tuple[int, ...], ...], batch: int) -> int:
        """Steps in an epoch; floor(examples of the largest group / batch), but at least one, unless overridden.

        Used if a suite sets `training: {epoch: scheme}`; otherwise all methods take equally many.

        Args:
            sizes: for each group, the training examples of each of its domains.
            batch: examples of each group in a step.
        """
        return max(1, max(map(sum, sizes)) // batch)

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """The critic; unless overridden, the discrepancy's module for k groups, if there is a discrepancy.

        The critic has its own parameters. It must not hold the network's modules, which are trained as parts of their
        own; a critic that needs a module of the same shape makes it with `msda_bench.api.fresh_copy`.

        Args:
            network: the run's network, for inspection.
            k: labelled groups.
            discrepancy: the suite's, if the scheme uses one.

        Raises:
            PluginError: the scheme does not support the network.
        """
        return discrepancy.build(network.feature_dim, k) if discrepancy else nn.Identity()

    @abstractmethod
    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """One step's objective. No Python branch on a tensor's value."""

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """The values that the run carries through a stage besides its weights, at its start; empty unless overridden.

        Examples are an average of the weights (a mean teacher starts as `parts.weights`), a prototype of each class, or
        a pseudo-label for each example. Names, shapes and dtypes stay as given here. `step`, `after_step`,
        `at_stage` and `at_epoch` return new values by name; the others do not change, and nothing is changed in place.

        Args:
            parts: the run's, at the start of the stage.
            sizes: the numbers of examples, features and outputs.
            stage: the stage that starts.
        """
        return {}

    def after_step(self, parts: Parts, batch: Batch, phase: Phase) -> Carried:
        """New carried values after a phase's update; none unless overridden.

        Args:
            parts: the run's; `parts.weights` are those after the update. No gradient is recorded.
            batch: the step's; `batch.carried` holds the carried values.
            phase: the phase whose update was made.
        """
        return {}

    def at_stage(
        self,
        parts: Parts,
        sources: SourcePass,
        carried: Carried,
        stage: Stage,
    ) -> Carried:
        """New carried values at the start of a stage, after `carry` and before `at_epoch`; none unless overridden.

        It sees all labelled training examples once, so a stage whose features are fixed may keep theirs. It is called
        in stages that may see the sources.

        Args:
            parts: the run's, in evaluation mode. No gradient is recorded.
            sources: features, outputs and labels of all groups' training examples.
            carried: what `carry` gave.
            stage: the stage that starts.
        """
        return {}

    def at_epoch(
        self,
        parts: Parts,
        target: TargetPass,
        carried: Carried,
        stage: Stage,
    ) -> Carried:
        """New carried values at the start of each epoch and of each stage; none unless overridden.

        It sees all unlabelled training examples of the target, so it may assign each a pseudo-label, which a step looks
        up by `Batch.target_rows`. It is called in stages that may see the target.

        Args:
            parts: the run's, in evaluation mode. No gradient is recorded.
            target: features and outputs of the target's training examples, n of them.
            carried: the carried values.
            stage: the stage of the coming steps.
        """
        return {}

    def predict(self, parts: Parts, x: Examples, carried: Carried) -> tuple[Tensor, Tensor]:
        """Features and outputs of examples, for the test, for validators and for `at_epoch`.

        Those of the network unless overridden. A method that tests an ensemble averages its heads here. It is called in
        evaluation mode on a part of the examples at a time, so an example's outputs must not depend on others.

        Args:
            parts: the run's.
            x: n examples.
            carried: the carried values at that time; at the end, those of the last stage.

        Returns:
            Features (n, any width), and outputs (n, outputs): logits, or the predicted number.
        """
        features = parts.features(x)
        return features, parts.predictor(features)


class FitData(NamedTuple):
    """What a predictor is fitted to; nothing of it is to be changed.

    Attributes:
        x: (n, width) float32, or a CSR matrix of a bag of words.
        y: (n,) int64 classes, of which some may not occur, or float32 numbers.
        groups: (n,) int64, the place of each example's group among the predictor's `groups`.
        target: (m, width) unlabelled training examples of the target, as `x`; (0, width) unless it `needs_target`.
    """

    x: Inputs
    y: Array
    groups: Array
    target: Inputs


class Predictor(SchemeBase):
    """A scheme without a network and its steps: it is fitted at once to all labelled examples, such as a forest.

    It sees the labelled training examples of the very split on which other methods train, and the target's without
    labels if it sets `needs_target = True`. It is tested and scored by validators on the same ones as others. An
    example is a row of numbers: a dataset of images or texts needs a backbone with frozen features. Its `features`, for
    validators, are the inputs themselves.

    One without `uses_inputs` gets inputs of no columns. One with `uses_predictions` gets the predictions that come with
    the test examples as its inputs, no example to be fitted to, and no validator's score: it is a reference, too.
    """

    stackable = False

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """One group of all sources, unless overridden; the target alone if it needs its labels."""
        return ((target,),) if self.needs_target_labels else (sources,)

    @abstractmethod
    def fit(self, rows: FitData, task: Task, seed: int) -> Callable[[Inputs], Array]:
        """Fits a model, on one thread; equal arguments give an equal model.

        Args:
            rows: the training examples.
            task: the task.
            seed: of all its draws, from 0 to 2**32 - 1; it depends on the dataset, the target and the run's seed.

        Returns:
            A function from inputs (m, width) to outputs (m, task.outputs): logits, such as logarithms of probabilities,
            or the predicted number. Each finite, and each of its row alone.
        """
