"""The vote of several models, and each model's contribution to it (Feng et al. 2021, KD3A)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def vote(knowledge: Tensor, gate: float | Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The consensus of k models, and that of each subset of them.

    Args:
        knowledge: (k, b, classes) probabilities.
        gate: the threshold for the highest probability of a model.

    Returns:
        The consensus (b, classes), one-hot; (b,) 1 if a model passes the gate; the quality (2^k, b) of each subset's
        consensus, 0 if none of its models passes. Subsets are in the order of `itertools.product`.
    """
    top, classes = knowledge.max(-1)
    votes = nn.functional.one_hot(classes, knowledge.shape[-1]).to(knowledge)
    members = _subsets(len(knowledge), knowledge.device).to(knowledge.dtype).unsqueeze(-1)
    passing = members * (top > gate)
    some = passing.amax(1, keepdim=True)
    heard = some * passing + (1 - some) * members
    sums = torch.einsum("skb,kbc->sbc", heard * top, votes)
    consensus = nn.functional.one_hot(sums[-1].argmax(-1), knowledge.shape[-1]).to(knowledge)
    return consensus, some[-1, 0], sums.amax(-1) * some.squeeze(1)


def shapley(values: Tensor, k: int) -> Tensor:
    """Each player's mean contribution (k,) over all orders, from the values (2^k,) of the subsets (Shapley 1953)."""
    # Filled one by one on the device: a copy from the host would make it wait in every step.
    chances = [1 / (k * math.comb(k - 1, size)) for size in range(k)]
    chance = torch.cat([torch.full((1,), share, device=values.device) for share in chances]).to(values.dtype)
    members = _subsets(k, values.device)
    sizes = members.sum(1)
    joins, before = chance[(sizes - 1).clamp(min=0)], chance[sizes.clamp(max=k - 1)]
    matrix = torch.where(members.T > 0, joins, -before)
    return matrix @ values


def _subsets(k: int, device: torch.device) -> Tensor:
    """All subsets of k, one a row of 0 and 1, from none to all, in the order of `itertools.product`."""
    places = torch.arange(k - 1, -1, -1, device=device)
    return (torch.arange(2**k, device=device).unsqueeze(1) >> places) & 1
