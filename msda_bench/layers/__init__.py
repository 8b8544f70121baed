"""Layers that a backbone uses in place of torch's where a run's own random stream or a bag of words is involved."""

from msda_bench.layers.bag import BagLinear
from msda_bench.layers.dropout import Dropout

__all__ = ["BagLinear", "Dropout"]
