"""Pictures of digits from several sources, all 32 x 32 in three channels."""

from msda_bench_builtin.datasets.digits.dataset import Digits

__all__ = ["Digits"]
