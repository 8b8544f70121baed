"""The default scheme: one batch of every source and of the target a step."""

from __future__ import annotations

from torch import Tensor

from msda_bench.api import Batch, Parts, Phase, Scheme, Step, component


@component
class Adapt(Scheme):
    """Each source on its own against the target; the aggregator weighs them (DARN, MDAN).

    One step draws a batch of every source and of the target, and minimises aggregate(risks, gaps) (Wen et al. 2020,
    figure 2).
    """

    name = "adapt"

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The aggregated objective."""
        seen = parts.forward(batch)
        gaps = parts.critic(seen.source, seen.target)
        objective, weights, state = parts.aggregate(seen.risks, gaps, state)
        return Step(objective, seen.risks, gaps, weights, state)
