"""Statistics of paired runs: exact, and honest about how little few runs can tell."""

from msda_bench.stats.wilcoxon import SignedRank, signed_rank

__all__ = ["SignedRank", "signed_rank"]
