"""Backbones."""

from msda_bench_builtin.backbones.small import ConvNet, Linear, Mlp
from msda_bench_builtin.backbones.torchvision import Torchvision

__all__ = ["ConvNet", "Linear", "Mlp", "Torchvision"]
