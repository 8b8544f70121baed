"""Multiple domain matching networks."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from msda_bench.api import Batch, Count, Discrepancy, Network, NonNegative, Parts, Phase, Scheme, Step, component
from msda_bench.functional import reverse_gradient, uniform


@component
class Mdmn(Scheme):
    """MDMN: a critic with one output a domain, all pairs of domains weighted by how much they differ.

    Li et al. 2018, as DARN's authors ran it. With m[s, i] the mean of output i over domain s (the target last):
    w[s, i] = sigmoid(m[s, i] - m[i, i]) off the diagonal, F_i = sum_{s != i} w[s, i] m[s, i] - m[i, i], and weights
    beta = softmax(F) over the sources, 1 for the target. The domain loss is the mean over all samples x and outputs i
    of beta_i c(x, i) f_i(x), c = w[s, i] / n_s off the diagonal and -1 / n_i on it, behind gradient reversal; added is
    `penalty` (||grad sum_i f_i|| - 1)^2 at points between one random source's features and the target's. The objective
    is the mean risk + mu * domain loss. The cost of a step grows with k^2.
    """

    name = "mdmn"
    stacked = ("penalty",)
    uses_discrepancy = False

    hidden: tuple[Count, ...] = ()
    penalty: NonNegative = 10.0

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """A critic of sizes feature_dim - hidden - (k + 1)."""
        widths = [network.feature_dim, *self.hidden]
        layers: list[nn.Module] = []
        for narrow, wide in pairwise(widths):
            layers += [nn.Linear(narrow, wide), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(widths[-1], k + 1))

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The mean risk and the domain loss; the record's gaps are F of the sources, its weights beta."""
        seen = parts.forward(batch)
        assert seen.target is not None  # noqa: S101 - needs_target holds
        k, size = seen.source.shape[:2]
        domains = torch.cat([seen.source, seen.target.unsqueeze(0)])
        outputs = parts.critic(reverse_gradient(domains.flatten(0, 1)))
        means = outputs.view(k + 1, size, k + 1).mean(1)
        pairs, spread, beta = _weigh(means.detach(), k)
        # Every sample of domain s has the same c, 1/n_s of its pair's weight, so the sum over samples is over means.
        of_pairs = (beta * pairs * means).sum() / ((k + 1) * size * (k + 1))
        domain_loss = of_pairs + self.penalty * _gradient_penalty(parts, domains.detach(), batch.key)
        objective = seen.risks.mean() + parts.mu * domain_loss
        return Step(objective, seen.risks, spread[:k], beta[:k])


def _weigh(means: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Signed weights of the pairs (k+1, k+1), F (k+1,) and beta (k+1,), from the constants m[s, i]."""
    own = torch.eye(k + 1, dtype=means.dtype, device=means.device)
    towards = torch.sigmoid(means - means.diagonal()) * (1 - own)
    pairs = towards - own
    spread = (pairs * means).sum(0)
    beta = torch.cat([torch.softmax(spread[:k], dim=0), spread.new_ones(1)])
    return pairs, spread, beta


def _gradient_penalty(parts: Parts, domains: Tensor, key: Tensor) -> Tensor:
    """(||grad||_2 - 1)^2 of the sum of the critic's outputs, averaged over points between a source and the target."""
    k = domains.shape[0] - 1
    draws = uniform(key, (2,))
    source = (draws[0] * k).long().clamp(max=k - 1)
    chosen = domains.index_select(0, source.reshape(1)).squeeze(0)
    between = draws[1] * chosen + (1 - draws[1]) * domains[k]
    gradient: Tensor = torch.func.grad(lambda points: parts.critic(points).sum())(between)
    penalty: Tensor = (torch.linalg.vector_norm(gradient, dim=1) - 1).square().mean()
    return penalty
