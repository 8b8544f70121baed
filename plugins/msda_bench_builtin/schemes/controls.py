"""Controls: what batch normalisation gains from the target's inputs where no loss of a method sees them."""

from __future__ import annotations

from torch import Tensor

from msda_bench.api import Batch, Group, Parts, Phase, Scheme, Step, component


@component
class PassThrough(Scheme):
    """All sources as one, as in `pooled`; the target's batch passes through the network, and no loss of it is taken.

    Batch normalisation sees the target's rows beside the sources', as in a method that adapts. What such a method gains
    over this control it owes to its loss. In a network without batch normalisation it trains as SRC.
    """

    name = "pass_through"
    uses_discrepancy = False
    uses_mu = False
    needs_target = True

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """One group of all sources."""
        return (sources,)

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The mean risk."""
        risks = parts.forward(batch).risks
        return Step(risks.mean(), risks)


@component
class AdaBn(PassThrough):
    """AdaBN: trains as SRC; then batch normalisation has the statistics of the target's training inputs alone.

    Li et al. 2017 ("Revisiting Batch Normalization for Practical Domain Adaptation"). No weight is adapted, and no step
    sees the target. Where no batch normalisation trains, as in a network without it or in a pretrained one that keeps
    its statistics, nothing changes, and it is SRC. Validators score the network with the new statistics, which is the
    one tested.
    """

    name = "adabn"
    needs_target = False
    target_statistics = True
