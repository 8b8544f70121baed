"""The methods as scikit-learn estimators: `DARN(gamma=0.9).fit(X, y, sample_domain=domains)`.

It needs scikit-learn, which `pip install "msda-bench[sklearn]"` brings; nothing else in msda-bench does.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError("msda_bench.sklearn needs scikit-learn; install it: pip install 'msda-bench[sklearn]'")

from msda_bench.sklearn.criterion import Criterion
from msda_bench.sklearn.estimators import MSDAClassifier, MSDARegressor
from msda_bench.sklearn.methods import (
    CDAN,
    DANN,
    DARN,
    M3SDA,
    MCD,
    MDAN,
    MDMN,
    SRC,
    WADN,
    WDGRL,
    DANNRegressor,
    DARNRegressor,
    GroupDRO,
    GroupDRORegressor,
    MDANRegressor,
    MDMNRegressor,
    SRCRegressor,
    WADNRegressor,
    WDGRLRegressor,
)

__all__ = [
    "CDAN",
    "DANN",
    "DARN",
    "M3SDA",
    "MCD",
    "MDAN",
    "MDMN",
    "SRC",
    "WADN",
    "WDGRL",
    "Criterion",
    "DANNRegressor",
    "DARNRegressor",
    "GroupDRO",
    "GroupDRORegressor",
    "MDANRegressor",
    "MDMNRegressor",
    "MSDAClassifier",
    "MSDARegressor",
    "SRCRegressor",
    "WADNRegressor",
    "WDGRLRegressor",
]
