"""Schemes, one a file."""

from msda_bench_builtin.schemes.adapt import Adapt
from msda_bench_builtin.schemes.alternate import Alternate
from msda_bench_builtin.schemes.best_single import BestSingle
from msda_bench_builtin.schemes.cdan import Cdan
from msda_bench_builtin.schemes.decision import Decision
from msda_bench_builtin.schemes.ensemble import Ensemble
from msda_bench_builtin.schemes.kd3a import Kd3a
from msda_bench_builtin.schemes.m3sda import M3sda
from msda_bench_builtin.schemes.mcd import Mcd
from msda_bench_builtin.schemes.mdd import Mdd
from msda_bench_builtin.schemes.mdmn import Mdmn
from msda_bench_builtin.schemes.mfsan import Mfsan
from msda_bench_builtin.schemes.pooled import Pooled
from msda_bench_builtin.schemes.regularised import Regularised
from msda_bench_builtin.schemes.shot import Shot
from msda_bench_builtin.schemes.simpal import Simpal
from msda_bench_builtin.schemes.target_only import TargetOnly
from msda_bench_builtin.schemes.wjdot import Wjdot

__all__ = [
    "Adapt",
    "Alternate",
    "BestSingle",
    "Cdan",
    "Decision",
    "Ensemble",
    "Kd3a",
    "M3sda",
    "Mcd",
    "Mdd",
    "Mdmn",
    "Mfsan",
    "Pooled",
    "Regularised",
    "Shot",
    "Simpal",
    "TargetOnly",
    "Wjdot",
]
