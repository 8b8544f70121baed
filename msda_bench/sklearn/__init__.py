"""The methods as scikit-learn estimators: `DARN(gamma=0.9).fit(X, y, sample_domain=domains)`.

This package needs scikit-learn (`pip install "msda-bench[sklearn]"`); the rest of msda-bench does not.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError("msda_bench.sklearn needs scikit-learn; install it: pip install 'msda-bench[sklearn]'")

from msda_bench.sklearn.criterion import Criterion
from msda_bench.sklearn.estimators import MSDAClassifier, MSDARegressor
from msda_bench.sklearn.methods import (
    BNM,
    CDAN,
    DANN,
    DARN,
    DECISION,
    KD3A,
    M3SDA,
    MCC,
    MCD,
    MDAN,
    MDD,
    MDMN,
    MFSAN,
    SHOT,
    SRC,
    WADN,
    WDGRL,
    WJDOT,
    BestSingle,
    BestSingleRegressor,
    DANNRegressor,
    DARNRegressor,
    Ensemble,
    EnsembleRegressor,
    GroupDRO,
    GroupDRORegressor,
    MDANRegressor,
    MDMNRegressor,
    SImpAl,
    SRCRegressor,
    WADNRegressor,
    WDGRLRegressor,
    WJDOTRegressor,
)

__all__ = [
    "BNM",
    "CDAN",
    "DANN",
    "DARN",
    "DECISION",
    "KD3A",
    "M3SDA",
    "MCC",
    "MCD",
    "MDAN",
    "MDD",
    "MDMN",
    "MFSAN",
    "SHOT",
    "SRC",
    "WADN",
    "WDGRL",
    "WJDOT",
    "BestSingle",
    "BestSingleRegressor",
    "Criterion",
    "DANNRegressor",
    "DARNRegressor",
    "Ensemble",
    "EnsembleRegressor",
    "GroupDRO",
    "GroupDRORegressor",
    "MDANRegressor",
    "MDMNRegressor",
    "MSDAClassifier",
    "MSDARegressor",
    "SImpAl",
    "SRCRegressor",
    "WADNRegressor",
    "WDGRLRegressor",
    "WJDOTRegressor",
]
