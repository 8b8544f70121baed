"""Validators, one a file."""

from msda_bench_builtin.validators.source_accuracy import SourceAccuracy
from msda_bench_builtin.validators.source_risk import SourceRisk

__all__ = ["SourceAccuracy", "SourceRisk"]
