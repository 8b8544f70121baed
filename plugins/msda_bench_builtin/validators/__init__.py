"""Validators."""

from msda_bench_builtin.validators.held_out import SourceAccuracy, SourceRisk
from msda_bench_builtin.validators.target import Bnm, Entropy, Infomax, Mano, Mixval, Snd
from msda_bench_builtin.validators.weighted import Dev, ImportanceWeightedRisk

__all__ = [
    "Bnm",
    "Dev",
    "Entropy",
    "ImportanceWeightedRisk",
    "Infomax",
    "Mano",
    "Mixval",
    "Snd",
    "SourceAccuracy",
    "SourceRisk",
]
