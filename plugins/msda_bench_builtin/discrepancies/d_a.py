"""The d_A distance by domain critics."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from msda_bench.api import Count, Discrepancy, component
from msda_bench.functional import reverse_gradient
from msda_bench_builtin.discrepancies.critics import critics

Sign = Literal["text", "code"]


class _DomainCritics(nn.Module):
    def __init__(self, feature_dim: int, k: int, hidden: tuple[int, ...], sign: Sign) -> None:
        super().__init__()
        self.critics = critics(k, feature_dim, hidden)
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
            on_source, on_target = of_source * on_source, of_target * on_target
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
    are linear, as for Amazon.
    """

    name = "d_A"
    weighs_examples = True

    hidden: tuple[Count, ...] = ()
    sign: Sign = "text"

    def build(self, feature_dim: int, k: int) -> nn.Module:
        """One critic a source, of sizes feature_dim - hidden - 1."""
        return _DomainCritics(feature_dim, k, self.hidden, self.sign)
