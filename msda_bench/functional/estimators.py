"""Help for estimators of other libraries: arrays of rows, logits of probabilities, random state, one thread."""

from __future__ import annotations

import contextlib
import importlib.util
import random
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
LEAST = 1e-6
"""The lowest probability: a forest's may be 0, whose logarithm no loss accepts."""


def dense_rows(rows: Array | csr_matrix) -> Array:
    """The rows as an array."""
    return rows if isinstance(rows, np.ndarray) else cast("Array", rows.toarray())


def log_shares(shares: Array) -> Array:
    """Logits of probabilities: their logarithms, of at least `LEAST`."""
    return cast("Array", np.log(np.maximum(shares, LEAST)))


@contextlib.contextmanager
def seeded_globals(seed: int) -> Iterator[None]:
    """Seeds Python's, numpy's and torch's global random generators for a block, and lets scikit-learn route metadata.

    All of it is restored afterwards. Scikit-learn's warning that a fit did not converge is not shown: the model counts.
    """
    import torch

    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - what libraries draw from
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings(), _routing():
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            torch.default_generator.manual_seed(seed)
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002


@contextlib.contextmanager
def _routing() -> Iterator[None]:
    if importlib.util.find_spec("sklearn") is None:
        yield
        return
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning

    warnings.simplefilter("ignore", ConvergenceWarning)
    with config_context(enable_metadata_routing=True):
        yield


@contextlib.contextmanager
def on_one_thread() -> Iterator[None]:
    """Limits the libraries of linear algebra and OpenMP that are loaded by now, so that sums do not depend on cores."""
    if importlib.util.find_spec("threadpoolctl") is None:
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
