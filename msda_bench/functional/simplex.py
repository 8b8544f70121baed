"""Sharpmax, DARN's projection onto the simplex (Wen et al. 2020, equation 6 and appendix "Jacobian")."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

FEW = 32
"""Largest number of scores that are sorted; for more, Newton's iteration is faster on a CPU."""

BLOCK = 1 << 18
"""Numbers in a block of rows, small enough that intermediate results stay in the CPU's caches."""

ROUNDS = 64
"""Upper bound on the rounds of Newton's iteration, see `_newton`."""


def sharpmax(z: Tensor, dim: int = -1) -> Tensor:
    r"""Projects onto the probability simplex: argmin over alpha of -<z, alpha> + ||alpha||_2.

    .. math:: \alpha = [z - \nu]_+ / \|[z - \nu]_+\|_1 \quad\text{with } \nu \text{ such that } \|[z - \nu]_+\|_2 = 1

    The result is exact up to the rounding of `z`'s dtype, whereas the paper bisects: few scores are sorted, and many
    scores on a CPU use Newton's iteration for nu. With one thread, a row's weights do not depend on other rows, bit for
    bit. Adding a constant to `z` changes nothing. Reverse mode can differentiate it any number of times; each product
    with the Jacobian costs O(k).

    Args:
        z: floating point scores of any shape; +inf and -inf are limits (all of the weight, none of it).
        dim: the dimension of the k scores.

    Returns:
        Weights of the shape and dtype of `z`, non-negative and with sum 1 along `dim`.

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


class _Sharpmax(torch.autograd.Function):
    @staticmethod
    def forward(z: Tensor) -> Tensor:
        # The iteration reads its numbers to decide when to stop, which on a GPU would make the host wait.
        if z.shape[-1] > FEW and z.is_cpu:
            return _by_newton(z)
        return _by_sorting(z)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (alpha,) = ctx.saved_tensors
        if alpha.numel() <= BLOCK:
            return _jacobian_product(alpha, grad)
        rows = _blocks(alpha.reshape(-1, alpha.shape[-1]))
        slopes = _blocks(grad.reshape(-1, grad.shape[-1]))
        products = [_jacobian_product(some, slope) for some, slope in zip(rows, slopes, strict=True)]
        return torch.cat(products).view(alpha.shape)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int], z: Tensor) -> tuple[Tensor, int]:  # noqa: ARG004
        # Written by hand so that `forward` sees only plain tensors, on whose values it may branch.
        projected: Tensor = _Sharpmax.apply(z.movedim(in_dims[0], 0))  # type: ignore[no-untyped-call]
        return projected, 0


def _blocks(rows: Tensor) -> tuple[Tensor, ...]:
    return torch.split(rows, max(1, BLOCK // rows.shape[-1]))


def _jacobian_product(alpha: Tensor, v: Tensor) -> Tensor:
    # Appendix: J v = s/K (v - s'v/|S|) + |S|/sqrt(A) c c'v with c = s/|S| - alpha. Here K = sqrt(A) = 1/||alpha||_2,
    # since alpha = (z - nu)/K on the support and ||z - nu||_2 = 1 there. With l = s (v - alpha'v) this is
    # ||alpha||_2 (l - s'l alpha).
    support = alpha.detach().sign()
    lifted = support * (v - (alpha * v).sum(-1, keepdim=True))
    norm = torch.linalg.vector_norm(alpha, dim=-1, keepdim=True)
    product: Tensor = norm * (lifted - lifted.sum(-1, keepdim=True) * alpha)
    return product


def _by_sorting(z: Tensor) -> Tensor:
    # In float64 because the sums run over up to k terms. Scores at or below max - 1 are never in the support, so
    # clamping at -2 loses nothing; numbers in [-2, 0] cannot overflow.
    wide = z.double()
    top = wide.amax(-1, keepdim=True)
    shifted = (wide - top).masked_fill_(wide == top, 0).clamp_(min=-2)
    ordered = shifted.sort(dim=-1, descending=True).values
    count = torch.arange(1, z.shape[-1] + 1, dtype=torch.float64, device=z.device)
    mean = ordered.cumsum(-1) / count
    spread = (ordered * ordered).cumsum(-1) - count * mean * mean
    # nu_j solves sum over the j largest of (z - nu)^2 = 1. The support is the largest j whose smallest score lies above
    # nu_j. If there is no root, the mean replaces it, and the smallest score lies below.
    nu = mean - ((1 - spread).clamp_(min=0) / count).sqrt_()
    chosen = ((ordered > nu) * count).amax(-1, keepdim=True).clamp_(min=1).long() - 1
    above = (shifted - nu.gather(-1, chosen)).clamp_(min=0)
    # The smallest supported score, not nu, bounds the support: rounding may put nu just below a score outside.
    above.masked_fill_(shifted < ordered.gather(-1, chosen), 0)
    return above.div_(above.sum(-1, keepdim=True)).to(z.dtype)


def _by_newton(z: Tensor) -> Tensor:
    rows = z.reshape(-1, z.shape[-1])
    weights = torch.empty(rows.shape, dtype=z.dtype)
    for some, result in zip(_blocks(rows), _blocks(weights), strict=True):
        result.copy_(_weights(some))
    return weights.view(z.shape)


def _weights(z: Tensor) -> Tensor:
    """The weights of scores (rows, k), in float64."""
    wide = z.double().contiguous()
    top = wide.amax(-1, keepdim=True)
    shifted = wide - top
    if top.isinf().any():
        shifted.masked_fill_(wide == top, 0)
    # float32 does most of the way at half the cost; float64 then reduces the error to rounding.
    near = _newton(shifted.float(), torch.full_like(top, -1, dtype=torch.float32), 1e-3)
    # Near the root a step of t leaves an error below k/2 t^2: h'' <= k and |h'| >= 1 there.
    nu = _newton(shifted, near.double(), math.sqrt(2**-53 / z.shape[-1]))
    above = shifted.sub_(nu).relu_()
    return above.div_(above.sum(-1, keepdim=True))


def _newton(shifted: Tensor, nu: Tensor, enough: float) -> Tensor:
    """The root nu (rows, 1) of h(nu) = ||[shifted - nu]_+||_2 = 1, where `shifted` (rows, k) has maximum 0.

    h is convex and decreasing with slope -||[.]_+||_1 / h, so Newton's steps from the left never pass the root. Each
    step reduces (h - 1) |h'| at least by a factor of 4. It starts at k or less and |h'| >= 1, so log4(k / enough) steps
    suffice. A row stops after its first step of length `enough` or less, so it does not depend on other rows.
    """
    above = torch.empty_like(shifted)
    moving = torch.ones_like(nu, dtype=torch.bool)
    for _ in range(ROUNDS):
        torch.sub(shifted, nu, out=above).relu_()
        total = above.sum(-1, keepdim=True)
        # vector_norm adds sequentially, so that thousands of small squares would lose digits beside a 1.
        norm = above.square_().sum(-1, keepdim=True).sqrt_()
        step = (norm - 1).mul_(norm).div_(total).mul_(moving)
        nu = nu + step
        moving = step.abs() > enough
        if not moving.any():
            break
    return nu
