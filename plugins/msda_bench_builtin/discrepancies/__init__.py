"""Discrepancies."""

from msda_bench_builtin.discrepancies.adversarial import ProxyADistance, Wasserstein
from msda_bench_builtin.discrepancies.mmd import Mmd
from msda_bench_builtin.discrepancies.moments import Coral, Moments, SpectralL2
from msda_bench_builtin.discrepancies.none import NoDiscrepancy
from msda_bench_builtin.discrepancies.transport import Sinkhorn, SlicedWasserstein

__all__ = [
    "Coral",
    "Mmd",
    "Moments",
    "NoDiscrepancy",
    "ProxyADistance",
    "Sinkhorn",
    "SlicedWasserstein",
    "SpectralL2",
    "Wasserstein",
]
