"""Layers that draw from a run's own stream, for bags of words and images, and re-initialised copies of modules."""

from msda_bench.layers.fresh import fresh_copy
from msda_bench.layers.inputs import BagLinear, Normalise
from msda_bench.layers.norm import EachDomain, Norm, WeightNormLinear, last_layer, norm_layers
from msda_bench.layers.step_key import Dropout, StepKey, StepProgress

__all__ = [
    "BagLinear",
    "Dropout",
    "EachDomain",
    "Norm",
    "Normalise",
    "StepKey",
    "StepProgress",
    "WeightNormLinear",
    "fresh_copy",
    "last_layer",
    "norm_layers",
]
