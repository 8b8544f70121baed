"""Discrepancies of features and predictions together."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from msda_bench.api import (
    AddedLater,
    Batch,
    Count,
    Discrepancy,
    Group,
    Network,
    Parts,
    Phase,
    PluginError,
    Positive,
    Scheme,
    Step,
    component,
)
from msda_bench_builtin.schemes.batches import source_risks
from msda_bench_builtin.schemes.mdd import ramp_share, scaled_gradient


class _Conditioned(nn.Module):
    """A discrepancy of the products of features and probabilities, all of them or random ones."""

    on_features: Tensor | None
    on_outputs: Tensor | None

    def __init__(self, discrepancy: nn.Module, random: tuple[Tensor, Tensor] | None) -> None:
        super().__init__()
        self.discrepancy = discrepancy
        on_features, on_outputs = random or (None, None)
        self.register_buffer("on_features", on_features)
        self.register_buffer("on_outputs", on_outputs)

    def forward(
        self,
        source: Tensor,
        target: Tensor | None,
        on_source: Tensor,
        on_target: Tensor | None,
        *weights: Tensor,
    ) -> Tensor:
        joint = None if target is None or on_target is None else self._join(target, on_target)
        gaps: Tensor = self.discrepancy(self._join(source, on_source), joint, *weights)
        return gaps

    def _join(self, features: Tensor, probabilities: Tensor) -> Tensor:
        if self.on_features is None or self.on_outputs is None:
            return (features.unsqueeze(-1) * probabilities.unsqueeze(-2)).flatten(-2)
        return (features @ self.on_features) * (probabilities @ self.on_outputs)


@component
class Cdan(Scheme):
    """CDAN: gaps are of features and predictions together, so that domains are aligned class by class.

    The discrepancy sees the multilinear map f (x) p of features f and predicted probabilities p: all products, and
    if these are more than `limit`, `random` of them, (R_f f) * (R_p p) / sqrt(random) by element with fixed standard
    normal R_f and R_p (Long et al. 2018, "Conditional Adversarial Domain Adaptation", section on multilinear
    conditioning). The sources are one domain, as in tables of several sources (DomainNet's, TLL's). With
    `d_A: {hidden: [500, 500], dropout: 0.5}` and mu 0.5 it is the authors' CDAN (1024 for objects), with `entropy`
    their CDAN+E: their loss is a mean over both batches, half of `d_A`'s sum of two means, so that mu 0.5 is their 1.
    Here any discrepancy is possible.

    Parameters:
        sources: "pooled", all as one against the target; "apart", each alone, weighed by the aggregator, as in `adapt`.
        limit: the largest number of products that are all used; 4096 in the paper.
        random: the number of random ones beyond it; 1024 in the authors' code.
        predictions: "fixed" holds p constant, as in the authors' code; "trained" lets the discrepancy's gradient pass
            through p as well as f, as in the paper's game.
        ramp: the network gets (1 - exp(-ramp t)) / (1 + exp(-ramp t)) of the discrepancy's gradient, t the share of
            training done, while critics learn at full strength from the start; 10 in the paper. null for 1 throughout.
        entropy: whether examples have the weight 1 + exp(-H(p)), by the entropy of their prediction in nats, scaled to
            mean 1 in each domain's batch. The discrepancy must take weights, as `d_A` does.
    """

    name = "cdan"
    version = 2
    tasks = ("classification",)

    limit: Count = 4096
    random: Count = 1024
    predictions: Literal["trained", "fixed"] = "fixed"
    ramp: Positive | None = 10.0
    entropy: bool = False
    sources: Annotated[Literal["pooled", "apart"], AddedLater("apart")] = "pooled"

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """One group of all sources, or one of each."""
        return (sources,) if self.sources == "pooled" else super().groups(sources, target)

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """The discrepancy's module, for features as wide as the map.

        Raises:
            PluginError: `entropy` is set and the discrepancy takes no weights of examples.
        """
        assert discrepancy is not None  # noqa: S101 - uses_discrepancy holds
        if self.entropy and not discrepancy.weighs_examples:
            raise PluginError(
                f"scheme 'cdan' weighs examples by entropy, but discrepancy {discrepancy.name!r} takes no weights of "
                "examples; use d_A, or set entropy: false"
            )
        width = network.feature_dim
        classes = _outputs(network)
        if width * classes <= self.limit:
            return _Conditioned(discrepancy.build(width * classes, k), None)
        on_features = torch.randn(width, self.random) * (1 / math.sqrt(self.random))
        on_outputs = torch.randn(classes, self.random)
        return _Conditioned(discrepancy.build(self.random, k), (on_features, on_outputs))

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The aggregated objective."""
        k, size = batch.y.shape
        features = parts.features(batch.x)
        outputs = parts.predictor(features)
        risks = source_risks(parts, outputs, batch)
        weights = self._weights(outputs, batch, k, size)
        conditions = torch.softmax(outputs, dim=-1)
        if self.predictions == "fixed":
            conditions = conditions.detach()
        share = ramp_share(self.ramp, batch.progress)
        source, target = _split(scaled_gradient(features, share), k, size)
        on_source, on_target = _split(scaled_gradient(conditions, share), k, size)
        gaps = parts.critic(source, target, on_source, on_target, *weights)
        objective, alpha, state = parts.aggregate(risks, gaps, state)
        return Step(objective, risks, gaps, alpha, state)

    def _weights(self, outputs: Tensor, batch: Batch, k: int, size: int) -> tuple[Tensor, ...]:
        """Weights of the sources' examples (k, size) and of the target's (size,); empty if all count equally."""
        if not self.entropy:
            return ()
        logs = torch.log_softmax(outputs, dim=-1)
        surety = (logs.exp() * logs).sum(-1)
        share = ramp_share(self.ramp, batch.progress)
        weights = 1 + torch.exp(scaled_gradient(surety, share))
        source, target = _split(weights.unsqueeze(-1), k, size)
        if target is None:
            raise PluginError(
                "scheme 'cdan' weighs examples by entropy, which takes a discrepancy that uses the target"
            )
        parts = (source.squeeze(-1), target.squeeze(-1))
        return tuple(part / part.detach().mean(-1, keepdim=True) for part in parts)


def _split(rows: Tensor, k: int, size: int) -> tuple[Tensor, Tensor | None]:
    """The rows of the sources (k, size, width) and of the target, repeated as in `Parts.forward`; None if undrawn."""
    target = rows[k * size :] if len(rows) > k * size else None
    if target is not None and len(target) < size:
        target = target.repeat(size // len(target), 1)
    return rows[: k * size].reshape(k, size, -1), target


def _outputs(network: Network) -> int:
    """The width of the predictor's outputs."""
    trained = network.predictor.training
    with torch.no_grad():
        outputs = network.predictor.eval()(torch.zeros(1, network.feature_dim))
    network.predictor.train(trained)
    return int(outputs.shape[-1])
