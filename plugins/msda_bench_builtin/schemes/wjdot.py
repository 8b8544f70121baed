"""Weighted joint distribution optimal transport."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from msda_bench.api import (
    Batch,
    Carried,
    Count,
    Discrepancy,
    Network,
    NonNegative,
    Parts,
    Phase,
    Positive,
    Scheme,
    Sizes,
    Stage,
    Step,
    component,
    fresh_copy,
)
from msda_bench_builtin.aggregators.darn import sparsemax
from msda_bench_builtin.discrepancies.mmd import squared_distances
from msda_bench_builtin.schemes.ensemble import Each


@component
class Wjdot(Scheme):
    """WJDOT: the classifier and the sources' weights with the cheapest transport to the target.

    Turrisi et al. 2022, "Multi-source domain adaptation via weighted joint distributions optimal transport". In the
    stage "embedding" a classifier for each source trains the features on its source (their multi-task learning); the
    network's predictor learns from all sources at the same time, so that it need not start at random. In the stage
    "transport" the features are fixed, and the predictor f and weights alpha on the simplex minimise the cost of moving
    sum_s alpha_s S_s to the target's examples x' labelled by f(x'), where moving (x, y) to x' costs

        beta |x - x'|^2 / mean |x - x'|^2 + loss(f(x'), y).

    f takes a gradient step with the plan held fixed; alpha takes one of length `rate` along the sources' mean
    potentials, the gradient of the cost, and is projected onto the simplex. Their transport is exact, of all examples,
    by POT; ours is entropic, of a step's batches, so that runs stack. They measure features in their own units, and
    tune beta; their code puts the weight on the labels' squared error instead.

    Parameters:
        beta: weight of the features, in units of the batch's mean squared distance; ours.
        rate: step of alpha; in the authors' code the network's learning rate, 0.01.
        embedding: steps of the first stage for each of the second; ours.
        blur: entropic regularisation, as a share of the mean cost between the batches.
        iterations: updates of the potentials.
    """

    name = "wjdot"
    uses_discrepancy = False
    uses_mu = False
    needs_target = True
    stacked = ("beta", "rate")

    beta: NonNegative = 1.0
    rate: Positive = 0.01
    embedding: Positive = 3.0
    blur: Positive = 0.05
    iterations: Count = 50

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The embedding, without the target; then the predictor and the weights."""
        return (
            Stage("embedding", self.embedding, ("sources",), (Phase("embedding"),)),
            Stage("transport", phases=(Phase("transport", ("predictor",)),)),
        )

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """A classifier for each source.

        Raises:
            PluginError: the predictor has a module whose initial weights cannot be redrawn.
        """
        return Each(fresh_copy(network.predictor) for _ in range(k))

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """Equal weights of the sources, for the second stage."""
        k = len(sizes.groups)
        return {"alpha": torch.full((k,), 1 / k)} if stage.name == "transport" else {}

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """A stage's objective; the second's recorded gaps are the gradient of the cost in alpha, of mean 0."""
        k, size = batch.y.shape
        if phase.name == "embedding":
            features = parts.features(batch.x)
            outputs = parts.critic(features.view(k, size, -1)).flatten(0, 1)
            risks = parts.loss(outputs, batch.y.flatten()).view(k, size).mean(1)
            shared = parts.loss(parts.predictor(features.detach()), batch.y.flatten()).mean()
            return Step(risks.mean() + shared, risks)
        with torch.no_grad():
            features = parts.features(batch.x)
            source, target = features[: k * size], features[k * size :]
            risks = parts.loss(parts.predictor(source), batch.y.flatten()).view(k, size).mean(1)
        cost = self._cost(parts, source, batch.y.flatten(), target)
        alpha = batch.carried["alpha"]
        plan, potentials = transport(cost.detach(), (alpha / size).repeat_interleave(size), self.blur, self.iterations)
        gaps = potentials.view(k, size).mean(1)
        gaps = gaps - gaps.mean()
        moved = {"alpha": sparsemax(alpha - self.rate * gaps)}
        return Step((plan * cost).sum(), risks, gaps, alpha, carried=moved)

    def _cost(self, parts: Parts, source: Tensor, y: Tensor, target: Tensor) -> Tensor:
        """The cost of moving each labelled example to each of the target's: (n, m)."""
        n, m = len(source), len(target)
        outputs = parts.predictor(target)
        losses = parts.loss(outputs.repeat(n, 1), y.repeat_interleave(m)).view(n, m)
        squares = squared_distances(source, target)
        return self.beta * squares / squares.mean().clamp(min=torch.finfo(squares.dtype).tiny) + losses


def transport(cost: Tensor, weights: Tensor, blur: float, iterations: int) -> tuple[Tensor, Tensor]:
    """Entropic optimal transport of n weighted points to m equal ones.

    Args:
        cost: (n, m).
        weights: (n,), with sum 1; some may be 0.
        blur: the regularisation, as a share of the mean cost.
        iterations: averaged updates of both potentials, before a last one that gives each target its full weight.

    Returns:
        The plan (n, m), and the potentials (n,) of the points: the gradient of the cost in their weights, up to a
        constant.
    """
    epsilon = blur * cost.mean().clamp(min=torch.finfo(cost.dtype).tiny)
    scaled, logs = cost / epsilon, weights.log()
    shares = torch.full_like(scaled[0], 1 / len(scaled[0])).log()
    u, v = torch.zeros_like(scaled[:, 0]), torch.zeros_like(scaled[0])
    for _ in range(iterations):
        u, v = (u - torch.logsumexp(v + shares - scaled, 1)) / 2, (v - torch.logsumexp((u + logs) - scaled.T, 1)) / 2
    v = -torch.logsumexp((u + logs) - scaled.T, 1)
    return torch.exp((u + logs).unsqueeze(1) + v + shares - scaled), epsilon * u
