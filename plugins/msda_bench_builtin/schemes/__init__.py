"""Schemes, one a file."""

from msda_bench_builtin.schemes.adapt import Adapt
from msda_bench_builtin.schemes.m3sda import M3sda
from msda_bench_builtin.schemes.mdmn import Mdmn
from msda_bench_builtin.schemes.pooled import Pooled
from msda_bench_builtin.schemes.target_only import TargetOnly

__all__ = ["Adapt", "M3sda", "Mdmn", "Pooled", "TargetOnly"]
