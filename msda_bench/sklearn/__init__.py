"""The methods as scikit-learn estimators: `DARN(gamma=0.9).fit(X, y, sample_domain=domains)`.

This package needs scikit-learn (`pip install ".[sklearn]"` in the clone); the rest of msda-bench does not.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError("msda_bench.sklearn needs scikit-learn; install it: pip install '.[sklearn]' in the clone")

from msda_bench.sklearn import methods
from msda_bench.sklearn.criterion import Criterion
from msda_bench.sklearn.estimators import MSDAClassifier, MSDARegressor
from msda_bench.sklearn.methods import *  # noqa: F403 - one line per method there

__all__ = ["Criterion", "MSDAClassifier", "MSDARegressor"]
__all__ += methods.__all__
