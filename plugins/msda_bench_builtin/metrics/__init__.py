"""Metrics for tables."""

from msda_bench_builtin.metrics.classes import Accuracy, Auc, BalancedAccuracy, MacroF1
from msda_bench_builtin.metrics.errors import R2, MeanAbsoluteError, MeanSquaredError
from msda_bench_builtin.metrics.one_class import Auprc, Auroc, Sensitivity, Specificity

__all__ = [
    "R2",
    "Accuracy",
    "Auc",
    "Auprc",
    "Auroc",
    "BalancedAccuracy",
    "MacroF1",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Sensitivity",
    "Specificity",
]
