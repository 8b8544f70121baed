"""Backbones."""

from msda_bench_builtin.backbones.signals import ConvNet1d
from msda_bench_builtin.backbones.small import ConvNet, Linear, Mlp
from msda_bench_builtin.backbones.torchvision import Torchvision

__all__ = ["ConvNet", "ConvNet1d", "Linear", "Mlp", "Torchvision"]
