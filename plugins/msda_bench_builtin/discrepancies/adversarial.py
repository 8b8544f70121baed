"""Gaps that a critic learns: the proxy A-distance, and the Wasserstein distance."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from msda_bench.api import AddedLater, Count, Discrepancy, Dropout, NonNegative, Rate, StepKey, component
from msda_bench.functional import reverse_gradient, uniform


class _StackedLinear(nn.Module):
    """k linear layers, each with its own input: (k, n, inputs) to (k, n, outputs)."""

    def __init__(self, k: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(k, inputs, outputs))
        self.bias = nn.Parameter(torch.empty(k, 1, outputs))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.weight.shape[1])  # torch.nn.Linear's
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)


def critics(k: int, inputs: int, hidden: tuple[int, ...], dropout: float = 0.0) -> nn.Sequential:
    """Critics side by side, with ReLU and dropout between layers: (k, n, inputs) to logits (k, n, 1)."""
    layers: list[nn.Module] = []
    widths = [inputs, *hidden]
    for narrow, wide in pairwise(widths):
        layers += [_StackedLinear(k, narrow, wide), nn.ReLU()]
        if dropout:
            layers.append(Dropout(dropout))
    return nn.Sequential(*layers, _StackedLinear(k, widths[-1], 1))


Sign = Literal["text", "code"]


class _DomainCritics(nn.Module):
    def __init__(
        self,
        feature_dim: int,
        k: int,
        hidden: tuple[int, ...],
        dropout: float,
        sign: Sign,
    ) -> None:
        super().__init__()
        self.critics = critics(k, feature_dim, hidden, dropout)
        self.sign = sign

    def forward(self, source: Tensor, target: Tensor, *weights: Tensor) -> Tensor:
        both = torch.cat([source, target.expand(len(source), *target.shape)], dim=1)
        logits = self.critics(reverse_gradient(both)).squeeze(-1)
        size = source.shape[1]
        # Logistic loss: -log sigmoid(l) for the source (label 1), -log(1 - sigmoid(l)) for the target (label 0).
        on_source = nn.functional.softplus(-logits[:, :size])
        on_target = nn.functional.softplus(logits[:, size:])
        if weights:  # the gradient through the weights is reversed, too
            of_source, of_target = map(reverse_gradient, weights)
            on_source = of_source * on_source
            on_target = of_target * on_target
        loss = on_source.mean(1) + on_target.mean(1)
        # Critics lower the loss and, behind the reversal, features raise it. The text's gap is 2 - loss, with a minus;
        # another reversal makes all gradients those of the code's gap.
        return 2 - reverse_gradient(loss) if self.sign == "text" else loss


@component
class ProxyADistance(Discrepancy):
    """d_A distance by one domain critic a source, behind gradient reversal; with k = 1, DANN's.

    With the logistic loss of the critics (source 1, target 0, each a batch mean) the gap is 2 - (BCE_source +
    BCE_target), small for a source that the critic confuses with the target (Wen et al. 2020, section 3.2). `sign:
    code` takes BCE_source + BCE_target instead, as the authors' code does: the same gradients up to alpha, but a
    confusable source has a *large* gap. `hidden` gives the widths of the critics' hidden layers; none, and the critics
    are linear, as for Amazon. `dropout` follows each hidden layer, as in the critics of CDAN's authors (0.5).
    """

    name = "d_A"
    weighs_examples = True

    hidden: tuple[Count, ...] = ()
    sign: Sign = "text"
    dropout: Annotated[Rate, AddedLater()] = 0.0

    def build(self, feature_dim: int, k: int) -> nn.Module:
        """One critic a source, of sizes feature_dim - hidden - 1."""
        return _DomainCritics(feature_dim, k, self.hidden, self.dropout, self.sign)


class _WassersteinCritics(StepKey):
    def __init__(
        self,
        feature_dim: int,
        k: int,
        hidden: tuple[int, ...],
        penalty: float,
    ) -> None:
        super().__init__()
        self.critics = critics(k, feature_dim, hidden)
        self.penalty = penalty

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        targets = target.expand(len(source), *target.shape)
        size = source.shape[1]
        both = torch.cat([source, targets], dim=1)
        values = self.critics(reverse_gradient(both)).squeeze(-1)
        distance = values[:, :size].mean(1) - values[:, size:].mean(1)
        penalty = self.penalty * self._gradient_penalty(source.detach(), targets.detach())
        # With another reversal, critics raise the distance that features lower. The penalty trains the critics and is
        # not part of the distance, so its value is subtracted.
        return reverse_gradient(distance) + (penalty - penalty.detach())

    def _gradient_penalty(self, source: Tensor, target: Tensor) -> Tensor:
        """(||grad|| - 1)^2 of each critic: (k,), a mean over both batches and a point between each pair."""
        share = uniform(self.key, tuple(source.shape[:2])).to(source.dtype).unsqueeze(-1)
        points = torch.cat([source, target, share * source + (1 - share) * target], dim=1)
        # The critics are independent, so the gradient of their sum holds each one's own.
        gradient: Tensor = torch.func.grad(lambda x: self.critics(x).sum())(points)
        penalty: Tensor = (torch.linalg.vector_norm(gradient, dim=-1) - 1).square().mean(1)
        return penalty


@component
class Wasserstein(Discrepancy):
    """Wasserstein-1 distance by one critic a source, with a gradient penalty.

    gap_i = mean f_i(source) - mean f_i(target), which critic f_i raises and the features lower, behind gradient
    reversal; f_i is held near slope 1 by `penalty` (||grad f_i|| - 1)^2 at both batches and at random points between
    them (Shen et al. 2018, "Wasserstein Distance Guided Representation Learning"; the penalty is of Gulrajani et al.
    2017). The penalty trains the critics but is not in the gap. Here critics and features alternate with one step each;
    the several critic steps of Shen et al. are the scheme `alternate`.
    """

    name = "wasserstein"

    hidden: tuple[Count, ...] = (100,)
    penalty: NonNegative = 10.0

    def build(self, feature_dim: int, k: int) -> nn.Module:
        """One critic a source, of sizes feature_dim - hidden - 1."""
        return _WassersteinCritics(feature_dim, k, self.hidden, self.penalty)
