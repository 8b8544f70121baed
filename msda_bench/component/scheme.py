"""Schemes: what is sampled, and how one training step goes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from msda_bench.component.backbone import Network
from msda_bench.component.base import Component
from msda_bench.component.discrepancy import Discrepancy
from msda_bench.component.parts import Parts
from msda_bench.component.step import Batch, Carried, Examples, Group, Phase, Sizes, Stage, Step, TargetPass


class Scheme(Component, ABC):
    """How a method trains.

    Attributes:
        uses_discrepancy: the suite may name a discrepancy and an aggregator for it.
        uses_mu: mu weighs something; the suite must then name it wherever there is something to weigh.
        needs_target: whether a batch of the unlabelled target is drawn in every step: True, always; False, never; None,
            unless the discrepancy looks at none (`uses_target = False`), as `none` does. A scheme that itself uses the
            target, and may have such a discrepancy, says True; else `Pass.target` may be None.
        needs_target_labels: the target's training labels are asked for; the record says so. Only an oracle does.
        tasks: the kinds of task that it trains.
    """

    kind: ClassVar[str] = "scheme"
    uses_discrepancy: ClassVar[bool] = True
    uses_mu: ClassVar[bool] = True
    needs_target: ClassVar[bool | None] = None
    needs_target_labels: ClassVar[bool] = False
    tasks: ClassVar[tuple[str, ...]] = ("classification", "regression")

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of a step, in order; one that trains all parts unless overridden. One may come more than once.

        All phases of a step see the same examples; each draws fresh dropout masks and has a `Batch.key` of its own. A
        scheme of several `stages` names the phases there.
        """
        return (Phase("all"),)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of a run, in order; one that sees sources and target unless overridden.

        A source-free method has a stage that sees the sources and one that sees the target alone.
        """
        return (Stage("all", phases=self.phases),)

    def draws_target(self, discrepancy: Discrepancy | None) -> bool:
        """Whether a batch of the target is drawn in each step; by `needs_target`, with the suite's discrepancy."""
        if self.needs_target is not None:
            return self.needs_target
        return discrepancy is None or discrepancy.uses_target

    @property
    def updates(self) -> int:
        """Updates by the optimiser in a training step, one a phase; the tables show it where it is not 1.

        Of several stages the one with the most counts.
        """
        return max(len(stage.phases) for stage in self.stages)

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """The labelled groups that each give a batch of every step; each source alone unless overridden.

        Args:
            sources: their names. Where a suite splits the sources these are names of parts, such as books/0; where it
                asks for labelled examples of the target, the last is <target>/labelled.
            target: its name; in no group, unless the scheme declares `needs_target_labels`.
        """
        return tuple((source,) for source in sources)

    def steps(self, sizes: tuple[tuple[int, ...], ...], batch: int) -> int:
        """Steps in an epoch; floor(examples of the largest group / batch), but one at least, unless overridden.

        Asked where a suite says `training: {epoch: scheme}`; otherwise all methods take equally many.

        Args:
            sizes: for each group, the training examples of each of its domains.
            batch: examples of each group in a step.
        """
        return max(1, max(map(sum, sizes)) // batch)

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """The critic; unless overridden, the discrepancy's module for k groups, if there is a discrepancy.

        The critic's parameters are its own. It must not hold the network's modules, which are parts of their own and
        trained as such; one that needs a module of the same shape makes it with `msda_bench.api.fresh_copy`.

        Args:
            network: the run's network, to look at.
            k: labelled groups.
            discrepancy: the suite's, where the scheme uses one.

        Raises:
            PluginError: the network does not suit this scheme.
        """
        return discrepancy.build(network.feature_dim, k) if discrepancy else nn.Identity()

    @abstractmethod
    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """One step's objective. No Python branch on a tensor's value."""

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """What the run carries through a stage beside its weights, at its start; nothing unless overridden.

        Such as an average of the weights (a mean teacher starts as `parts.weights`), a prototype of each class, or a
        pseudo-label for each example. Names, shapes and dtypes stay as they are given here. `step`, `after_step` and
        `at_epoch` give new values; nothing is changed in place.

        Args:
            parts: the run's, as they are when the stage starts.
            sizes: how many examples, features and outputs there are.
            stage: the stage that starts.
        """
        return {}

    def after_step(self, parts: Parts, batch: Batch, phase: Phase) -> Carried:
        """New values of what the run carries, after a phase's update; nothing new unless overridden.

        Args:
            parts: the run's; `parts.weights` are those after the update. No gradient is recorded.
            batch: the step's; `batch.carried` is what the run carries.
            phase: the phase whose update was made.

        Returns:
            New values by name; what is not named stays.
        """
        return {}

    def at_epoch(self, parts: Parts, target: TargetPass, carried: Carried, stage: Stage) -> Carried:
        """New values of what the run carries, at the start of each epoch, and of each stage; nothing new by default.

        It sees all unlabelled training examples of the target, so it may give each a pseudo-label, which a step looks
        up by `Batch.target_rows`. It is called in stages that may see the target.

        Args:
            parts: the run's, in evaluation mode. No gradient is recorded.
            target: features and outputs of the target's training examples, n of them.
            carried: what the run carries.
            stage: the stage of the coming steps.

        Returns:
            New values by name; what is not named stays.
        """
        return {}

    def predict(self, parts: Parts, x: Examples, carried: Carried) -> tuple[Tensor, Tensor]:
        """Features and outputs of examples, for the test, for validators and for `at_epoch`.

        The network's unless overridden. A method that tests an ensemble averages its heads here. It is called in
        evaluation mode on some of the examples at a time, so no example's outputs depend on another's.

        Args:
            parts: the run's.
            x: n examples.
            carried: what the run carries at that time; at the end, what its last stage left.

        Returns:
            Features (n, any width), and outputs (n, outputs): logits, or the predicted number.
        """
        features = parts.features(x)
        return features, parts.predictor(features)
