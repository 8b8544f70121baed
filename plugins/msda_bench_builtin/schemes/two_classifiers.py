"""Two classifiers that disagree on the target: MCD, and M3SDA with moments."""

from __future__ import annotations

from abc import ABC
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from msda_bench.api import (
    AddedLater,
    Batch,
    Count,
    Discrepancy,
    Network,
    Parts,
    Phase,
    Scheme,
    Stage,
    Step,
    component,
    fresh_copy,
)
from msda_bench_builtin.discrepancies.moments import moment_distances

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
    labels = batch.y.reshape(-1)
    losses = torch.stack([parts.loss(own[: k * size], labels) for own in outputs.unbind()])
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
        """The second classifier."""
        return fresh_copy(network.predictor)


@component
class Mcd(TwoClassifiers):
    """MCD: two classifiers that disagree on the target, and features that make them agree again.

    Saito et al. 2018 ("Maximum Classifier Discrepancy for Unsupervised Domain Adaptation", steps A, B and C), on all
    sources together, each with a batch. With the classifiers' probabilities p1 and p2, a step has three phases on the
    same examples:

    1. "task": everything on the task loss, the sum of both classifiers' risks, a mean over the sources.
    2. "classifiers": the classifiers on task loss - |p1 - p2| on the target.
    3. "features": the features on |p1 - p2| on the target, `repeats` times.

    |p1 - p2| is a mean over examples and classes, and has no weight, so there is no mu. The test uses the first
    classifier, the network's predictor. The scheme `m3sda` adds moment matching.

    Parameters:
        repeats: how often the last phase is repeated; Saito et al. try 2 to 4.
    """

    name = "mcd"
    version = 2
    uses_mu = False

    repeats: Count = 4

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """A phase's objective.

        The record's risks are the mean of the two classifiers'. Its gaps are the differences between |p1 - p2| on a
        source and on the target, the estimate of the H-delta-H distance on which the method is based; its weights are
        equal.
        """
        k = len(batch.y)
        _, outputs, losses = both(parts, batch, phase)
        risks = losses.mean((0, 2))
        disagreement = apart(outputs).view(k + 1, -1).mean(1)
        match phase.name:
            case "task":
                objective = 2 * risks.mean()
            case "classifiers":
                objective = 2 * risks.mean() - disagreement[k]
            case _:
                objective = disagreement[k]
        gaps = (disagreement[k] - disagreement[:k]).abs()
        return Step(objective, risks, gaps)


@component
class M3sda(TwoClassifiers):
    """M3SDA: two classifiers, and features whose moments agree between all pairs of domains.

    M3SDA-beta of Peng et al. 2019 ("Moment Matching for Multi-Source Domain Adaptation", section 4), in the version of
    DARN's authors: one pair of classifiers for all domains (Peng et al. have a pair for each source), moments up to the
    fourth. With the classifiers' probabilities p1 and p2, a step has three phases on the same examples:

    1. "task": everything on task loss + mu * moment distance (equation 2).
    2. "classifiers": the classifiers on task loss - |p1 - p2| on the target (equation 3).
    3. "features": the features on |p1 - p2| on the target (equation 4), `repeats` times.

    The task loss is the sum of both classifiers' risks on all sources; |p1 - p2| is the mean over examples and classes
    (the discrepancy loss of Saito et al. 2018, "Maximum Classifier Discrepancy"). The moment distance is the sum over
    orders n and pairs of domains of ||E[f^n] - E[f'^n]||_2, with powers by element, for the pair's features f and f'.

    The test uses the first classifier, the network's predictor, as do DARN's authors; so the tested network is the same
    for all methods. The second is a copy of it with its own initial weights.

    Parameters:
        orders: the highest order of the moments; 2 in the text of Peng et al., 5 in their code, 4 for DARN's authors.
        scale: "sum" adds up all pairs of domains (DARN's authors); "mean" takes the mean over the pairs of a source and
            the target plus the mean over the pairs of sources (Peng et al., equation 1).
        repeats: how often the last phase is repeated; 4 in the code of Peng et al. for digits, 1 for DARN's authors.
        centred: whether moments from the second on are of the features minus their domain's mean, as in the code of
        Peng et al.

    mu is 0.0005 for DARN's authors with a perceptron and 1e-7 with a convolutional network; in the code of Peng et al.
    it is 0.0005 / 6. There the first term compares centred examples pair by pair, in the order in which they were
    drawn; here it is the distance of the means. The cost of a step grows with k^2, but only in the small moments.
    """

    name = "m3sda"
    version = 2

    orders: Count = 4
    scale: Literal["sum", "mean"] = "sum"
    repeats: Count = 1
    centred: Annotated[bool, AddedLater()] = False

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """A phase's objective.

        The record's risks are the mean of the two classifiers', its gaps each source's moment distance to the target,
        its weights equal.
        """
        k, size = batch.y.shape
        features, outputs, losses = both(parts, batch, phase)
        risks = losses.mean((0, 2))
        distances = moment_distances(features.reshape(k + 1, size, -1), self.orders, centred=self.centred)
        task = 2 * k * risks.mean()
        disagreement = apart(outputs[:, k * size :]).mean()
        match phase.name:
            case "task":
                objective = task + parts.mu * self._moment_distance(distances)
            case "classifiers":
                objective = task - disagreement
            case _:
                objective = disagreement
        return Step(objective, risks, distances[:k, k])

    def _moment_distance(self, distances: Tensor) -> Tensor:
        k = len(distances) - 1
        to_target = distances[:k, k].sum()
        between = distances[:k, :k].sum() / 2
        if self.scale == "sum":
            return to_target + between
        return to_target / k + between / max(1, k * (k - 1) // 2)
