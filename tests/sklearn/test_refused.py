"""Rows and labels that no estimator can use are refused in one line."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from msda_bench.sklearn import SRC, SRCRegressor
from tests.sklearn.conftest import trained


def spoiled(matrix, **parts):
    for name, value in parts.items():
        getattr(matrix, name)[1] = value
    return matrix


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda x: spoiled(scipy.sparse.csr_array(x), indices=99),
            "X: the sparse matrix is broken: indices must be < 4",
        ),
        (lambda x: spoiled(scipy.sparse.csr_array(x), indptr=9999), "X: the sparse matrix is broken: indptr"),
        (lambda x: spoiled(scipy.sparse.coo_matrix(x), row=999), "X: the sparse matrix is broken: "),
        (lambda x: x.astype("M8[s]"), "X holds dates; make them numbers"),
        (lambda x: pd.DataFrame(x).astype({1: "M8[s]"}), "X: column '1' holds dates"),
        (lambda x: np.ma.masked_array(x, x > 1), " numbers are masked; fill them, or leave their rows out"),
        (lambda x: torch.tensor(x, requires_grad=True), "X: cannot be read as numbers: RuntimeError: "),
    ],
)
def test_unusable_rows_are_refused_by_fit_and_predict(change, said, rows):
    for call in (lambda x: trained(SRC, rows, X=x), trained(SRC, rows).predict):
        with pytest.raises(ValueError, match=re.escape(said)):
            call(change(rows.X))


@pytest.mark.parametrize(
    ("estimator", "change", "said"),
    [
        (SRC, lambda y: scipy.sparse.csr_array(y[:, None]), "y: must be a label for each row of X, not a csr_array"),
        (SRC, lambda y: dict(enumerate(y)), "y: must be a label for each row of X, not a dict"),
        (SRC, lambda y: np.zeros(len(y), [("a", int)]), "y: must be a label for each row of X, not several fields"),
        (SRC, lambda y: np.ma.masked_array(y, np.arange(len(y)) < 3), "y: 3 of 180 source rows have no label"),
        (SRC, lambda y: np.where(np.arange(len(y)) < 3, np.datetime64("NaT"), y.astype("M8[s]")), "y: 3 of 180 source"),
        (SRCRegressor, lambda y: y.astype("M8[s]"), "y holds dates; make them numbers"),
        (SRCRegressor, lambda y: y * 1e300, "y: labels up to 1e+300 that differ by 1e+300 are beyond what float64"),
        (SRCRegressor, lambda y: y * 1e-300, "y: labels up to 1e-300 that differ by 1e-300 are beyond what float64"),
    ],
)
def test_unusable_labels_are_refused(estimator, change, said, rows):
    with pytest.raises(ValueError, match=re.escape(said)):
        trained(estimator, rows, y=change(rows.y))
