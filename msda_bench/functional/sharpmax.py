"""Sharpmax, the projection onto the simplex that DARN aggregates with (paper, equation 6 and appendix "Jacobian")."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def sharpmax(z: Tensor, dim: int = -1) -> Tensor:
    r"""Projects onto the probability simplex: argmin over alpha of -<z, alpha> + ||alpha||_2.

    .. math:: \alpha = [z - \nu]_+ / \|[z - \nu]_+\|_1 \quad\text{with } \nu \text{ such that } \|[z - \nu]_+\|_2 = 1

    It is exact: a sort and two cumulative sums in place of the paper's bisection. Adding a constant to `z` changes
    nothing. Differentiable any number of times; each product with the Jacobian costs O(k).

    Args:
        z: scores of any shape, floating point; +-inf are taken as limits (all of the weight, none of it).
        dim: the dimension that holds the k scores.

    Returns:
        Weights of the shape and dtype of `z`: non-negative, summing to 1 along `dim`.

    Raises:
        TypeError: `z` is not floating point.
        ValueError: `dim` is empty.
    """
    if not z.is_floating_point():
        raise TypeError(f"sharpmax needs a floating point tensor, not {z.dtype}; call z.float() first")
    if z.dim() == 0:
        return torch.ones_like(z) * (z * 0 + 1)
    if z.shape[dim] == 0:
        raise ValueError("sharpmax of no scores is not defined: the dimension is empty")
    projected: Tensor = _Sharpmax.apply(z.movedim(dim, -1))  # type: ignore[no-untyped-call]
    return projected.movedim(-1, dim)


def _project(z: Tensor) -> Tensor:
    # In float64 because the sums run over up to k terms. Scores at or below max - 1 are never in the support, so the
    # clamp loses nothing (at -2, clear of that bound) and leaves numbers in [-2, 0], which cannot overflow.
    wide = z.double()
    top = wide.amax(-1, keepdim=True)
    shifted = torch.where(wide == top, torch.zeros_like(wide), wide - top).clamp(min=-2.0)
    ordered = shifted.sort(dim=-1, descending=True).values
    count = torch.arange(1, z.shape[-1] + 1, dtype=torch.float64, device=z.device)
    mean = ordered.cumsum(-1) / count
    spread = (ordered * ordered).cumsum(-1) - count * mean * mean
    # nu_j solves sum over the j largest of (z - nu)^2 = 1; a spread above 1 has no root: those j are no support.
    nu = mean - ((1 - spread).clamp(min=0) / count).sqrt()
    supported = ((spread <= 1) & (ordered > nu)) * count
    chosen = supported.amax(-1, keepdim=True).clamp(min=1).long() - 1
    # The smallest supported score, not nu, bounds the support: rounding may put nu just below a score outside.
    inside = shifted >= ordered.gather(-1, chosen)
    above = (shifted - nu.gather(-1, chosen)).clamp(min=0) * inside
    weights: Tensor = (above / above.sum(-1, keepdim=True)).to(z.dtype)
    return weights


def _jacobian_product(alpha: Tensor, v: Tensor) -> Tensor:
    # Appendix: J v = s/K (v - s'v/|S|) + |S|/sqrt(A) c c'v with c = s/|S| - alpha. Here K = sqrt(A) = 1/||alpha||_2,
    # since alpha = (z - nu)/K on the support and ||z - nu||_2 = 1 there.
    support = (alpha > 0).to(alpha.dtype)
    size = support.sum(-1, keepdim=True)
    mean = (support * v).sum(-1, keepdim=True) / size
    tilt = mean - (alpha * v).sum(-1, keepdim=True)
    norm = torch.linalg.vector_norm(alpha, dim=-1, keepdim=True)
    product: Tensor = norm * (support * (v - mean + tilt) - size * alpha * tilt)
    return product


class _Sharpmax(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor) -> Tensor:
        return _project(z)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (alpha,) = ctx.saved_tensors
        return _jacobian_product(alpha, grad)
