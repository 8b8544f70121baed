"""A shared check of the tests of formulas: two objectives have equal gradients."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def same_gradient(found: Tensor, expected: Tensor, of: Iterable[Tensor], atol: float = 1e-8) -> None:
    """Asserts that two objectives, which need not be equal, have equal gradients with respect to each tensor."""
    tensors = list(of)
    one, other = (
        torch.autograd.grad(objective, tensors, retain_graph=True, materialize_grads=True)
        for objective in (found, expected)
    )
    for mine, theirs in zip(one, other, strict=True):
        assert torch.allclose(mine, theirs, atol=atol)
