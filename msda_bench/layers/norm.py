"""Normalisation between layers, of a whole batch or of each domain's part of it, and a weight-normalised predictor."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

Norm: TypeAlias = Literal["none", "batch", "domain", "layer"]
"""How a hidden layer is normalised: not, over a batch, over each domain's part of a batch, or each example alone."""


class EachDomain(nn.Module):
    """Normalises the rows of each domain apart, as in separate passes (Peng et al. 2019 and Zhu et al. 2019's code).

    In every step the engine sets the numbers of rows. A pass over all examples of the step, or over the labelled ones,
    is cut into its domains; any other pass is of one domain. Running statistics see the domains in this order.

    Args:
        norm: a batch normalisation.

    Attributes:
        labelled: rows of each labelled group, in order.
        unlabelled: rows of the target; 0 if it was not drawn.
    """

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm
        self.labelled: tuple[int, ...] = ()
        self.unlabelled = 0

    def forward(self, x: Tensor) -> Tensor:
        """Normalised rows, of the shape of `x`."""
        sizes = list(self.labelled)
        if self.unlabelled and len(x) != sum(sizes):
            sizes.append(self.unlabelled)
        if not self.training or len(sizes) == 1 or len(x) != sum(sizes):
            normalised: Tensor = self.norm(x)
            return normalised
        return torch.cat([self.norm(part) for part in torch.split(x, sizes)])


def norm_layers(norm: Norm, width: int, *, images: bool = False) -> list[nn.Module]:
    """The layers that normalise rows (n, width), or images (n, width, height, width): one, or none.

    Batch normalisation has torch's momentum, 0.1, and eps, 1e-5 (Ioffe and Szegedy 2015). "batch" normalises sources
    and target together if a scheme passes them together, as TLL and DomainBed do; "layer" is layer normalisation (Ba
    et al. 2016), for images over all channels and places.
    """
    match norm:
        case "none":
            return []
        case "layer":
            return [nn.GroupNorm(1, width) if images else nn.LayerNorm(width)]
        case "batch" | "domain":
            layer = nn.BatchNorm2d(width) if images else nn.BatchNorm1d(width)
            return [layer if norm == "batch" else EachDomain(layer)]


class WeightNormLinear(nn.Linear):
    """A linear layer whose rows have a direction and a length of their own (Salimans and Kingma 2016).

    The weight is length * direction / |direction|, row by row, as SHOT's classifier has it (Liang et al. 2020). torch's
    parametrisation is not used, since its `reset_parameters` would not reach the direction.
    """

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__(width, outputs)
        self.length = nn.Parameter(torch.empty(outputs, 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws as `torch.nn.Linear`; lengths are those of the drawn rows, so that nothing is scaled at the start."""
        super().reset_parameters()
        if hasattr(self, "length"):  # torch's own constructor calls this before it is there
            with torch.no_grad():
                self.length.copy_(self.weight.norm(dim=1, keepdim=True))

    def forward(self, x: Tensor) -> Tensor:
        """Rows (n, outputs)."""
        directions = nn.functional.normalize(self.weight, dim=1)
        return nn.functional.linear(x, self.length * directions, self.bias)


def last_layer(width: int, outputs: int, *, weight_norm: bool) -> nn.Linear:
    """The linear layer that ends a predictor."""
    return WeightNormLinear(width, outputs) if weight_norm else nn.Linear(width, outputs)
