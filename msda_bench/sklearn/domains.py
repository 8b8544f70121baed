"""Splits the rows of an array into domains by skada's convention: sources are positive, targets negative."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_consistent_length, column_or_1d

from msda_bench.api import Array, Inputs

TARGET = "target"


def labels_of(y: Any, rows: Array) -> Array:
    """Labels of some rows; only these rows decide the dtype, so a None or a string elsewhere has no effect.

    Raises:
        ValueError: one is missing, or some are texts and some are not.
    """
    typed = None if hasattr(y, "dtype") else object
    labels: Array = np.asarray(y.iloc[rows] if hasattr(y, "iloc") else np.asarray(y, dtype=typed)[rows])
    if labels.dtype != object:
        return labels
    if n_missing := int(pd.isna(labels).sum()):
        raise ValueError(f"y: {n_missing} of {len(labels)} source rows have no label (NaN or None); leave them out")
    if len({isinstance(label, str) for label in labels.flat}) > 1:
        raise ValueError("y: some labels are texts and some are not; make all of them texts, or all numbers")
    return np.array(labels.tolist())


def read_domains(sample_domain: Any, x: Inputs) -> Array | None:
    """The (n,) int64 domain numbers, positive for sources and negative for the target; None if None.

    Raises:
        ValueError: it does not hold one whole number per row, contains 0, or has no source or no target.
    """
    if sample_domain is None:
        return None
    given = np.asarray(sample_domain)  # scikit-learn would turn pandas' own whole numbers into floats
    numbers: Array = column_or_1d(np.array(given.tolist()) if given.dtype == object else given)
    check_consistent_length(x, numbers)
    whole = numbers.dtype.kind in "iu" or (numbers.dtype.kind == "f" and bool((numbers % 1 == 0).all()))
    if not whole:
        raise ValueError(
            f"sample_domain must hold whole numbers, not {numbers.dtype}: sources positive, targets negative"
        )
    numbers = numbers.astype(np.int64)
    signs = set(np.sign(numbers))
    if signs != {-1, 1}:
        what = "0" if 0 in signs else "no source" if 1 not in signs else "no target"
        raise ValueError(
            f"sample_domain holds {what}; sources are positive, targets negative, and every cross-validation fold "
            "needs both: stratify by sample_domain"
        )
    return numbers
