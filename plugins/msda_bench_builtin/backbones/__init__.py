"""Backbones, one a file."""

from msda_bench_builtin.backbones.convnet import ConvNet
from msda_bench_builtin.backbones.linear import Linear
from msda_bench_builtin.backbones.mlp import Mlp
from msda_bench_builtin.backbones.torchvision import Torchvision

__all__ = ["ConvNet", "Linear", "Mlp", "Torchvision"]
