"""Aggregators."""

from msda_bench_builtin.aggregators.darn import Sharpmax, Softmax, Sparsemax, TopK
from msda_bench_builtin.aggregators.group_dro import GroupDro
from msda_bench_builtin.aggregators.mdan import Hardmax, LogSumExp
from msda_bench_builtin.aggregators.uniform import Size, Uniform
from msda_bench_builtin.aggregators.wadn import Wadn

__all__ = [
    "GroupDro",
    "Hardmax",
    "LogSumExp",
    "Sharpmax",
    "Size",
    "Softmax",
    "Sparsemax",
    "TopK",
    "Uniform",
    "Wadn",
]
