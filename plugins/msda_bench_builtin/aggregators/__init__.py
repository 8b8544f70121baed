"""Aggregators, one a file."""

from msda_bench_builtin.aggregators.hardmax import Hardmax
from msda_bench_builtin.aggregators.logsumexp import LogSumExp
from msda_bench_builtin.aggregators.sharpmax import Sharpmax
from msda_bench_builtin.aggregators.uniform import Uniform

__all__ = ["Hardmax", "LogSumExp", "Sharpmax", "Uniform"]
