"""Discrepancies, one a file."""

from msda_bench_builtin.discrepancies.d_a import ProxyADistance
from msda_bench_builtin.discrepancies.mmd import Mmd
from msda_bench_builtin.discrepancies.none import NoDiscrepancy
from msda_bench_builtin.discrepancies.spectral_l2 import SpectralL2

__all__ = ["Mmd", "NoDiscrepancy", "ProxyADistance", "SpectralL2"]
