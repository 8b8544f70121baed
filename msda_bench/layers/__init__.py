"""Layers for a run's own random stream and for bags of words, and copies of modules with weights of their own."""

from msda_bench.layers.bag import BagLinear
from msda_bench.layers.dropout import Dropout
from msda_bench.layers.fresh import fresh_copy
from msda_bench.layers.step_key import StepKey, StepProgress

__all__ = ["BagLinear", "Dropout", "StepKey", "StepProgress", "fresh_copy"]
