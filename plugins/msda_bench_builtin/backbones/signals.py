"""A convolutional network for signals (channels, time), of one length or padded to it."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from msda_bench.api import (
    Backbone,
    Count,
    EachDomain,
    Files,
    InputSpec,
    Network,
    Norm,
    PluginError,
    Task,
    component,
    last_layer,
    norm_layers,
)

_SIGNAL = ("channels", "time")


@component
class ConvNet1d(Backbone):
    """Convolutions along time, each with ReLU, and the mean over time; a linear predictor: for signals.

    The fully convolutional network of Wang, Yan and Oates 2017 ("Time series classification from scratch with deep
    neural networks: a strong baseline"), with two blocks instead of three and one size of kernel. Convolutions are
    padded with 0, so any length will do.

    Where numbers may be missing (`InputSpec.mask`), the network also sees which are known. A step at which no channel
    is known is 0 in every layer, and counts neither in batch normalisation nor in the mean over time. So padding after
    the end of a signal changes nothing, and with a stride of 1 neither does padding before it.

    Parameters:
        channels: of the convolutions.
        kernel: steps that a convolution sees at once; the first one sees at least twice its stride.
        stride: steps between two places of the first convolution; more makes long signals cheaper.
        norm: of the convolutions, before their ReLU; see `msda_bench.api.norm_layers`. "layer" is of all channels at
            each step.
        bottleneck: width of a linear layer with `norm` and without ReLU after the mean over time; null for none.
        weight_norm: as of `mlp`.
    """

    name = "convnet1d"

    channels: Annotated[tuple[Count, ...], Field(min_length=1)] = (32, 64)
    kernel: Count = 9
    stride: Count = 1
    norm: Norm = "none"
    bottleneck: Count | None = None
    weight_norm: bool = False

    def build(self, task: Task, input: InputSpec, files: Files | None = None) -> Network:
        """The network for signals of shape (channels, time).

        Raises:
            PluginError: the input is no signal.
        """
        if len(input.shape) != len(_SIGNAL) or input.sparse:
            what = f"backbone convnet1d needs signals (channels, time), not input of shape {input.shape}"
            remedy = "convnet takes images, mlp any shape" if len(input.shape) > len(_SIGNAL) else "mlp takes any shape"
            raise PluginError(f"{what}; {remedy}")
        masked = input.mask > 0
        layers: list[nn.Module] = [_WithKnown(input.mask)] if masked else []
        bias = self.norm not in {"batch", "domain"}  # they would subtract it
        kernel = max(self.kernel, 2 * self.stride)
        stride = self.stride
        for narrow, wide in pairwise([input.shape[0], *self.channels]):
            convolution = nn.Conv1d(narrow, wide, kernel, stride, bias=bias)
            layers.append(_Block(convolution, self.norm, masked=masked))
            kernel = self.kernel
            stride = 1
        layers.append(_MeanOverTime(masked=masked))
        width = self.channels[-1]
        if self.bottleneck is not None:
            layers += [nn.Linear(width, self.bottleneck), *norm_layers(self.norm, self.bottleneck)]
            width = self.bottleneck
        return Network(nn.Sequential(*layers), last_layer(width, task.outputs, weight_norm=self.weight_norm), width)


class _WithKnown(nn.Module):
    """Adds a last channel: 1 at each step at which some number is known, as the last `mask` channels say."""

    def __init__(self, mask: int) -> None:
        super().__init__()
        self.mask = mask

    def forward(self, x: Tensor) -> Tensor:
        known = x[:, -self.mask :].amax(1, keepdim=True)
        return torch.cat([x, known], dim=1)


class _Block(nn.Module):
    """A convolution, normalisation and ReLU; if `masked`, input and output have a last channel of the known steps."""

    def __init__(self, convolution: nn.Conv1d, norm: Norm, *, masked: bool) -> None:
        super().__init__()
        self.convolution = convolution
        self.norm = _norm_of_steps(norm, convolution.out_channels, masked=masked)
        self.masked = masked
        kernel = convolution.kernel_size[0]
        self.around = ((kernel - 1) // 2, kernel // 2)

    def forward(self, x: Tensor) -> Tensor:
        if not self.masked:
            moved = self.convolution(functional.pad(x, self.around))
            return functional.relu(moved if self.norm is None else self.norm(moved))
        moved = self.convolution(functional.pad(x[:, :-1], self.around))
        stride = self.convolution.stride[0]
        known = x[:, -1:]
        if stride > 1:
            known = functional.max_pool1d(known, stride, stride, ceil_mode=True)
        if self.norm is not None:
            moved = self.norm(torch.cat([moved, known], dim=1))
        return torch.cat([functional.relu(moved) * known, known], dim=1)


class _MeanOverTime(nn.Module):
    """The mean of each channel over time; if `masked`, over the known steps, which the last channel says."""

    def __init__(self, *, masked: bool) -> None:
        super().__init__()
        self.masked = masked

    def forward(self, x: Tensor) -> Tensor:
        if not self.masked:
            return x.mean(2)
        known = x[:, -1:].sum(2).clamp(min=1)
        return x[:, :-1].sum(2) / known


def _norm_of_steps(norm: Norm, width: int, *, masked: bool) -> nn.Module | None:
    """What normalises (n, width, time), or (n, width + 1, time) whose last channel says which steps are known."""
    match norm:
        case "none":
            return None
        case "layer":
            return _EachStep(width)
        case "batch" | "domain":
            layer = _KnownBatchNorm(width) if masked else nn.BatchNorm1d(width)
            return layer if norm == "batch" else EachDomain(layer)


class _EachStep(nn.LayerNorm):
    """Layer normalisation of the first `width` channels at each step."""

    def forward(self, x: Tensor) -> Tensor:
        width = self.normalized_shape[0]
        return super().forward(x[:, :width].movedim(1, -1)).movedim(-1, 1)


class _KnownBatchNorm(nn.BatchNorm1d):
    """Batch normalisation over the known steps of a batch: (n, width + 1, time) to (n, width, time).

    With all steps known it is torch's. Its running statistics are torch's, too, with the unbiased variance.
    """

    running_mean: Tensor
    running_var: Tensor
    momentum: float

    def forward(self, x: Tensor) -> Tensor:
        numbers = x[:, :-1].float()
        known = x[:, -1:].float()
        if self.training:
            mean, variance = self._moments(numbers, known)
        else:
            mean = self.running_mean
            variance = self.running_var
        scale = self.weight / torch.sqrt(variance + self.eps)
        return (numbers - mean[:, None]) * scale[:, None] + self.bias[:, None]

    def _moments(self, numbers: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        count = known.sum().clamp(min=1)
        mean = (numbers * known).sum((0, 2)) / count
        variance = ((numbers - mean[:, None]).square() * known).sum((0, 2)) / count
        with torch.no_grad():
            unbiased = variance * (count / (count - 1).clamp(min=1))
            for running, seen in ((self.running_mean, mean), (self.running_var, unbiased)):
                running.mul_(1 - self.momentum).add_(self.momentum * seen)
        return mean, variance
