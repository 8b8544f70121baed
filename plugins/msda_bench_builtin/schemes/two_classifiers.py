"""Code shared by schemes with two classifiers (Saito et al. 2018, "Maximum Classifier Discrepancy")."""

from __future__ import annotations

from abc import ABC

import torch
from torch import Tensor, nn

from msda_bench.api import Batch, Discrepancy, Network, Parts, Phase, Scheme, Stage, fresh_copy

TASK = Phase("task")
CLASSIFIERS = Phase("classifiers", ("predictor", "critic"))
FEATURES = Phase("features", ("features",))


def both(parts: Parts, batch: Batch, phase: Phase) -> tuple[Tensor, Tensor, Tensor]:
    """One pass through both classifiers: the network's predictor, and the critic, which is the second.

    Returns:
        Features (n, d); the classifiers' outputs (2, n, classes); their losses (2, k, b).
    """
    k, size = batch.y.shape
    features = parts.features(batch.x)
    if phase.name == CLASSIFIERS.name:
        features = features.detach()  # the phase does not use this gradient
    outputs = torch.stack([parts.predictor(features), parts.critic(features)])
    losses = torch.stack([parts.loss(one[: k * size], batch.y.reshape(-1)) for one in outputs.unbind()])
    return features, outputs, losses.view(2, k, size)


def apart(outputs: Tensor) -> Tensor:
    """|p1 - p2| of the two classifiers' outputs (2, ..., classes), by class: (..., classes)."""
    first, second = torch.softmax(outputs, dim=-1).unbind()
    return (first - second).abs()


class TwoClassifiers(Scheme, ABC):
    """A scheme whose critic is a second classifier, and whose step has the three phases above.

    Attributes:
        repeats: how often the last phase is repeated; a parameter of each scheme.
    """

    uses_discrepancy = False
    tasks = ("classification",)

    repeats: int

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Task, classifiers, and `repeats` times features."""
        return (Stage("all", phases=(TASK, CLASSIFIERS, *(FEATURES for _ in range(self.repeats)))),)

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """The second classifier.

        Raises:
            PluginError: the predictor has a module whose initial weights cannot be redrawn.
        """
        return fresh_copy(network.predictor)
