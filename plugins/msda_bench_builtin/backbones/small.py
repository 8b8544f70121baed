"""Networks that learn from nothing: linear, perceptron and convolutional."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated

import torch
from torch import Tensor, nn

from msda_bench.api import (
    AddedLater,
    Backbone,
    BagLinear,
    Count,
    Dropout,
    Files,
    InputSpec,
    Network,
    Norm,
    PluginError,
    Rate,
    Task,
    component,
    last_layer,
    norm_layers,
)
from msda_bench.functional import SparseRows


class _Raw(nn.Module):
    def __init__(self, *, bias_column: bool) -> None:
        super().__init__()
        self.bias_column = bias_column

    def forward(self, x: Tensor | SparseRows) -> Tensor:
        dense = x.to_dense() if isinstance(x, SparseRows) else x.flatten(1)
        if not self.bias_column:
            return dense
        return torch.cat([dense, dense.new_ones(len(dense), 1)], dim=1)


@component
class Linear(Backbone):
    """A linear predictor on the input itself.

    `bias_column` appends a constant 1 to the features, so that a discrepancy of the features sees their mean, as in the
    authors' synthetic regression; the predictor then needs no bias.
    """

    name = "linear"

    bias_column: bool = True

    def build(self, task: Task, input: InputSpec, files: Files | None = None) -> Network:
        """Features without parameters and one linear layer."""
        width = math.prod(input.shape) + self.bias_column
        return Network(
            _Raw(bias_column=self.bias_column), nn.Linear(width, task.outputs, bias=not self.bias_column), width
        )


@component
class Mlp(Backbone):
    """Fully connected: input - hidden... with ReLU, dropout before every hidden layer; linear predictor.

    The defaults are the paper's network for Amazon, 5000-1000-500-100 and 100-2, with dropout 0.7 on the input and on
    every hidden layer's input (Wen et al. 2020, section 5.1). Takes sparse bags of words, or dense input of any shape.

    Parameters:
        hidden: widths of the hidden layers.
        dropout: of every hidden layer's input.
        norm: of the hidden layers, before their ReLU; see `msda_bench.api.norm_layers`.
        bottleneck: width of a last linear layer with `norm` and without ReLU, as in SHOT's network; null for none.
        weight_norm: whether the predictor's weight has lengths and directions of its own, as in SHOT's network.
    """

    name = "mlp"

    hidden: tuple[Count, ...] = (1000, 500, 100)
    dropout: Rate = 0.7
    norm: Annotated[Norm, AddedLater()] = "none"
    bottleneck: Annotated[Count | None, AddedLater()] = None
    weight_norm: Annotated[bool, AddedLater()] = False

    def build(self, task: Task, input: InputSpec, files: Files | None = None) -> Network:
        """The network; its features are the last hidden layer, or the input itself without hidden layers."""
        widths = [math.prod(input.shape), *self.hidden]
        reads_bags = input.sparse and (self.hidden or self.bottleneck is not None)
        layers: list[nn.Module] = [] if reads_bags else [_Raw(bias_column=False)]
        for number, (narrow, wide) in enumerate(pairwise(widths)):
            linear = BagLinear(narrow, wide) if number == 0 and input.sparse else nn.Linear(narrow, wide)
            layers += [Dropout(self.dropout), linear, *norm_layers(self.norm, wide), nn.ReLU()]
        width = widths[-1]
        if self.bottleneck is not None:
            first = input.sparse and not self.hidden
            linear = BagLinear(width, self.bottleneck) if first else nn.Linear(width, self.bottleneck)
            layers += [linear, *norm_layers(self.norm, self.bottleneck)]
            width = self.bottleneck
        return Network(nn.Sequential(*layers), last_layer(width, task.outputs, weight_norm=self.weight_norm), width)


@component
class ConvNet(Backbone):
    """Convolutions 3x3 without padding, each with ReLU and 2x2 max-pooling; a perceptron predictor.

    The defaults are the paper's network for digits, 3-64-128-256, which leaves 256 x 3 x 3 = 2304 features of a 32x32
    image, and the predictor 2304-2048-1024-10 (Wen et al. 2020, appendix "Model Architecture"). Pooling rounds sizes up
    (ceil mode). No dropout.

    Parameters:
        channels: of the convolutions.
        hidden: widths of the predictor's hidden layers.
        norm: of the convolutions and of the predictor's hidden layers, before their ReLU; see
            `msda_bench.api.norm_layers`.
        bottleneck: width of a linear layer with `norm` and without ReLU after the convolutions; null for none.
        weight_norm: as of `mlp`.
    """

    name = "convnet"

    channels: tuple[Count, ...] = (64, 128, 256)
    hidden: tuple[Count, ...] = (2048, 1024)
    norm: Annotated[Norm, AddedLater()] = "none"
    bottleneck: Annotated[Count | None, AddedLater()] = None
    weight_norm: Annotated[bool, AddedLater()] = False

    def build(self, task: Task, input: InputSpec, files: Files | None = None) -> Network:
        """The network for images of shape (channels, height, width).

        Raises:
            PluginError: the input is not an image, or too small for this many convolutions.
        """
        if len(input.shape) != len(("channels", "height", "width")) or input.sparse:
            what = f"backbone convnet needs images (channels, height, width), not input of shape {input.shape}"
            raise PluginError(f"{what}; mlp takes any shape")
        height, width = (_size_after(size, len(self.channels)) for size in input.shape[1:])
        if min(height, width) < 1:
            needed = _smallest(len(self.channels))
            raise PluginError(f"backbone convnet needs images of at least {needed}x{needed}, not {input.shape[1:]}")
        channels = [input.shape[0], *self.channels]
        blocks: list[nn.Module] = []
        for narrow, wide in pairwise(channels):
            norm = norm_layers(self.norm, wide, images=True)
            blocks += [nn.Conv2d(narrow, wide, 3), *norm, nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)]
        feature_dim = channels[-1] * height * width
        blocks.append(nn.Flatten())
        if self.bottleneck is not None:
            blocks += [nn.Linear(feature_dim, self.bottleneck), *norm_layers(self.norm, self.bottleneck)]
            feature_dim = self.bottleneck
        return Network(nn.Sequential(*blocks), self._predictor(feature_dim, task), feature_dim)

    def _predictor(self, feature_dim: int, task: Task) -> nn.Module:
        widths = [feature_dim, *self.hidden]
        layers: list[nn.Module] = []
        for narrow, wide in pairwise(widths):
            layers += [nn.Linear(narrow, wide), *norm_layers(self.norm, wide), nn.ReLU()]
        return nn.Sequential(*layers, last_layer(widths[-1], task.outputs, weight_norm=self.weight_norm))


def _size_after(size: int, convolutions: int) -> int:
    """Side of an image after some unpadded 3x3 convolutions, each with 2x2 pooling rounded up; below 1 if too small."""
    for _ in range(convolutions):
        size = (size - 2 + 1) // 2 if size >= 3 else 0  # noqa: PLR2004 - the side of the kernel
    return size


def _smallest(convolutions: int) -> int:
    return next(size for size in range(1, 1 << 30) if _size_after(size, convolutions) >= 1)
