"""Schemes."""

from msda_bench_builtin.schemes.aad import Aad
from msda_bench_builtin.schemes.adapt import Adapt, Joint, Pooled, Regularised, TargetOnly
from msda_bench_builtin.schemes.alternate import Alternate
from msda_bench_builtin.schemes.baselines import GradientBoosting, LogisticRegression, RandomForest, Ridge
from msda_bench_builtin.schemes.cdan import Cdan
from msda_bench_builtin.schemes.controls import AdaBn, PassThrough
from msda_bench_builtin.schemes.decision import Decision
from msda_bench_builtin.schemes.ensemble import BestSingle, Ensemble
from msda_bench_builtin.schemes.given import Chance, Given
from msda_bench_builtin.schemes.kd3a import Kd3a
from msda_bench_builtin.schemes.mdd import Mdd
from msda_bench_builtin.schemes.mdmn import Mdmn
from msda_bench_builtin.schemes.mfsan import Mfsan
from msda_bench_builtin.schemes.own import Own
from msda_bench_builtin.schemes.shallow import Skada
from msda_bench_builtin.schemes.simpal import Simpal
from msda_bench_builtin.schemes.source_free import Shot
from msda_bench_builtin.schemes.transported import Jcpot, Wbt
from msda_bench_builtin.schemes.two_classifiers import M3sda, Mcd
from msda_bench_builtin.schemes.wjdot import Wjdot

__all__ = [
    "Aad",
    "AdaBn",
    "Adapt",
    "Alternate",
    "BestSingle",
    "Cdan",
    "Chance",
    "Decision",
    "Ensemble",
    "Given",
    "GradientBoosting",
    "Jcpot",
    "Joint",
    "Kd3a",
    "LogisticRegression",
    "M3sda",
    "Mcd",
    "Mdd",
    "Mdmn",
    "Mfsan",
    "Own",
    "PassThrough",
    "Pooled",
    "RandomForest",
    "Regularised",
    "Ridge",
    "Shot",
    "Simpal",
    "Skada",
    "TargetOnly",
    "Wbt",
    "Wjdot",
]
