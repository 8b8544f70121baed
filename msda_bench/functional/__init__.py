"""Autograd-ready functions of tensors: sharpmax and what components are written with."""

from msda_bench.functional.gradient import reverse_gradient
from msda_bench.functional.random import keep_mask, normal, random_bits, split_key, uniform
from msda_bench.functional.rows import SparseRows
from msda_bench.functional.sharpmax import sharpmax
from msda_bench.functional.views import drop_entries

__all__ = [
    "SparseRows",
    "drop_entries",
    "keep_mask",
    "normal",
    "random_bits",
    "reverse_gradient",
    "sharpmax",
    "split_key",
    "uniform",
]
