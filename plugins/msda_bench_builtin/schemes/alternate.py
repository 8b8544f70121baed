"""Several steps of the critic, then one of the network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from msda_bench.api import Batch, Count, Discrepancy, Network, Parts, Phase, PluginError, Scheme, Stage, Step, component
from msda_bench_builtin.schemes.adapt import Adapt

_CRITIC = Phase("critic", ("critic",))
_NETWORK = Phase("network", ("features", "predictor"))


@component
class Alternate(Scheme):
    """As `adapt`, but the critics learn first: `critic_steps` steps of the critics, then one of the network.

    All use the same batch, as in Shen et al. 2018 ("Wasserstein Distance Guided Representation Learning", algorithm 1,
    with the discrepancy `wasserstein`). In the critic steps every source's critic learns equally, whatever mu and the
    source's weight. Any discrepancy with parameters works, such as `d_A`.
    """

    name = "alternate"
    version = 2

    critic_steps: Count = 5

    @property
    def stages(self) -> tuple[Stage, ...]:
        """`critic_steps` phases of the critic, then one of the network."""
        return (Stage("all", phases=(*(_CRITIC for _ in range(self.critic_steps)), _NETWORK)),)

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """The discrepancy's module.

        Raises:
            PluginError: it has no parameters to train.
        """
        critic = super().build(network, k, discrepancy)
        if discrepancy is not None and not list(critic.parameters()):
            raise PluginError(
                f"scheme 'alternate' trains a critic, but discrepancy {discrepancy.name!r} has none; use scheme 'adapt'"
            )
        return critic

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The critics' objective, with equal weights and an unchanged state; or the aggregated one."""
        if phase.name == _CRITIC.name:
            with torch.no_grad():
                seen = parts.forward(batch)
            gaps = parts.critic(seen.source, seen.target)
            return Step(
                gaps.sum(),
                seen.risks,
                gaps,
                gaps.new_full(gaps.shape, 1 / len(gaps)),
                state,
            )
        return Adapt().step(parts, batch, state, phase)
