"""The oracle that trains on the target."""

from __future__ import annotations

from torch import Tensor

from msda_bench.api import Batch, Group, Parts, Phase, Scheme, Step, component


@component
class TargetOnly(Scheme):
    """TAR: trains only on the target's labelled training examples; an oracle, to be marked `reference: true`."""

    name = "target_only"
    uses_discrepancy = False
    uses_mu = False
    needs_target = False
    needs_target_labels = True

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """Only the target."""
        return ((target,),)

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The risk."""
        risks = parts.forward(batch).risks
        return Step(risks.mean(), risks)
