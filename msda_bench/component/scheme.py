"""Schemes: what is sampled, and how one training step goes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

from torch import Tensor, nn

from msda_bench.component.aggregator import Aggregate
from msda_bench.component.backbone import Network
from msda_bench.component.base import Component
from msda_bench.component.dataset import Task
from msda_bench.component.discrepancy import Discrepancy
from msda_bench.functional.rows import SparseRows

Group: TypeAlias = tuple[str, ...]
"""Domains that are drawn from as one."""


class Batch(NamedTuple):
    """The examples of one step, and a key for one phase of it.

    Attributes:
        x: rows of the k labelled groups, group by group, b rows each; then of the target if it is drawn, b rows, or
            b / m where each group draws m batches (see `Parts.forward`).
        y: (k, b) labels of the groups.
        key: (2,) int32 random key of this phase, for a scheme's own draws (`msda_bench.functional.uniform`).
        progress: () float32, how much of the run's training is done, from 0 in the first step towards 1; for ramps.
    """

    x: Tensor | SparseRows
    y: Tensor
    key: Tensor
    progress: Tensor | float = 0.0


class Pass(NamedTuple):
    """One concatenated forward pass.

    Attributes:
        source: (k, b, d) features of the labelled groups.
        target: (b, d) features of the target; None when it was not drawn. Where each group draws m batches, the
            target's one batch m times over.
        risks: (k,) mean task loss of each group.
    """

    source: Tensor
    target: Tensor | None
    risks: Tensor


@dataclass(frozen=True)
class Parts:
    """A run's parts as plain functions of tensors, so that the same step can be stacked.

    Attributes:
        features: batch to features (n, d).
        predictor: features to outputs (n, outputs).
        critic: the module that `Scheme.build` made, as a function.
        loss: outputs (n, outputs) and labels (n,) to losses (n,).
        aggregate: (risks, gaps, state) to `Aggregate`; the aggregator with its mu.
        mu: weight of the discrepancy.
    """

    features: Callable[[Tensor | SparseRows], Tensor]
    predictor: Callable[[Tensor], Tensor]
    critic: Callable[..., Tensor]
    loss: Callable[[Tensor, Tensor], Tensor]
    aggregate: Callable[[Tensor, Tensor, Tensor], Aggregate]
    mu: float | Tensor

    def forward(self, batch: Batch) -> Pass:
        """Features and risks of all domains in one pass.

        Where each group draws m batches in a step (`training: {epoch: equal}` and groups of m domains), the target's
        features come m times over: no mean changes, and a discrepancy that pairs rows finds as many on both sides.
        """
        k, size = batch.y.shape
        features = self.features(batch.x)
        labelled = features[: k * size]
        losses = self.loss(self.predictor(labelled), batch.y.reshape(-1))
        target = features[k * size :] if len(batch.x) > k * size else None
        if target is not None and len(target) < size:
            target = target.repeat(size // len(target), 1)
        return Pass(labelled.reshape(k, size, -1), target, losses.view(k, size).mean(1))


def task_loss(task: Task) -> Callable[[Tensor, Tensor], Tensor]:
    """Losses (n,) of outputs (n, outputs) and labels (n,): cross-entropy in nats, or the squared error."""
    if task.kind == "classification":
        return lambda outputs, labels: nn.functional.cross_entropy(outputs, labels, reduction="none")
    return lambda outputs, labels: (outputs.squeeze(-1) - labels).square()


class Step(NamedTuple):
    """What a scheme's step returns: a scalar objective, and (k,) risks, gaps and weights for the record."""

    objective: Tensor
    risks: Tensor
    gaps: Tensor
    weights: Tensor
    state: Tensor


@dataclass(frozen=True)
class Phase:
    """A part of a step with its own objective, which trains only the named parts."""

    name: str
    trains: tuple[str, ...] = ("features", "predictor", "critic")


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

        All phases of a step see the same examples; each draws fresh dropout masks and has a `Batch.key` of its own.
        """
        return (Phase("all"),)

    def draws_target(self, discrepancy: Discrepancy | None) -> bool:
        """Whether a batch of the target is drawn in each step; by `needs_target`, with the suite's discrepancy."""
        if self.needs_target is not None:
            return self.needs_target
        return discrepancy is None or discrepancy.uses_target

    @property
    def updates(self) -> int:
        """Updates by the optimiser in a training step, one a phase; the tables show it where it is not 1."""
        return len(self.phases)

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
