"""Code shared by schemes with a module for each source."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn


class Each(nn.Module):
    """k modules of one shape, with separate rows or the same ones.

    Args:
        modules: the k modules.
    """

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        super().__init__()
        self.of = nn.ModuleList(modules)

    def forward(self, rows: Tensor) -> Tensor:
        """The outputs for rows (k, n, d), or (n, d) for all k modules: (k, n, width)."""
        given = rows.expand(len(self.of), *rows.shape[-2:]).unbind()
        return torch.stack([module(own) for module, own in zip(self.of, given, strict=True)])


def mean_answer(outputs: Tensor) -> Tensor:
    """Logits (n, classes) of the mean probabilities of k classifiers with these logits (k, n, classes)."""
    return torch.logsumexp(outputs.log_softmax(-1), 0) - math.log(len(outputs))
