"""Reads what an estimator is given: rows, labels, domains and the device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from msda_bench.api import Array, Inputs
from msda_bench.errors import message_of, printable
from msda_bench.functional import lost_in_float32

_PAST_INT64 = 2.0**63


def sound(x: Any) -> Any:
    """Rows as scikit-learn takes them: a sparse matrix becomes CSR, and all else stays as it is.

    Raises:
        ValueError: an index of a sparse matrix is outside of its shape, which would crash the process later; or rows
            are dates or masked, whose numbers mean something else.
    """
    if not scipy.sparse.issparse(x):
        _refuse_dates(x)
        return _unmasked("X", x)
    try:
        if x.format in {"csr", "csc", "bsr"}:
            x.check_format(full_check=True)
        elif x.format == "coo":
            x = type(x)((x.data, x.coords), shape=x.shape)
        return x.tocsr()
    except (ValueError, TypeError, NotImplementedError) as error:
        raise ValueError(f"X: the sparse matrix is broken: {message_of(error)}") from error


def _refuse_dates(x: Any) -> None:
    """Refuses dates and durations: scikit-learn would count their seconds, and make a missing one a huge number."""
    if isinstance(x, pd.DataFrame):
        kinds = {str(name): getattr(dtype, "kind", "") for name, dtype in x.dtypes.items()}
        dates = [name for name, kind in kinds.items() if kind in "mM"]
        if dates:
            raise ValueError(
                f"X: column {printable(dates[0])!r} holds dates; make them numbers, such as days since one"
            )
    elif getattr(getattr(x, "dtype", None), "kind", "") in {"m", "M"}:
        raise ValueError("X holds dates; make them numbers, such as days since one")


def _unmasked(name: str, values: Any) -> Any:
    if isinstance(values, np.ma.MaskedArray) and (masked := int(np.ma.getmaskarray(values).sum())):
        raise ValueError(f"{name}: {masked} numbers are masked; fill them, or leave their rows out")
    return values


def plain_labels(y: Any) -> Any:
    """Labels without NumPy's type for texts of any length, which scikit-learn does not know; others as they are.

    A masked label is missing.
    """
    if isinstance(y, np.ma.MaskedArray):
        labels = y.data
        if np.ma.is_masked(y):
            labels = labels.astype(object)
            labels[np.ma.getmaskarray(y)] = None
        return labels
    return y.astype(object) if isinstance(y, np.ndarray) and y.dtype.kind == "T" else y


def labels_of(y: Any, rows: Array) -> Array:
    """Labels of some rows; only these rows decide the dtype, so a None or a string elsewhere has no effect.

    Raises:
        ValueError: one is missing, or some are texts and some are not.
    """
    if scipy.sparse.issparse(y) or isinstance(y, Mapping):
        raise ValueError(f"y: must be a label for each row of X, not a {type(y).__name__}")
    y = plain_labels(y)
    typed = None if hasattr(y, "dtype") else object
    labels: Array = np.asarray(y.iloc[rows] if hasattr(y, "iloc") else np.asarray(y, dtype=typed)[rows])
    if labels.dtype.kind == "V":
        raise ValueError("y: must be a label for each row of X, not several fields")
    if labels.dtype.kind not in "OmM":  # of numbers scikit-learn refuses NaN itself
        return labels
    if n_missing := int(pd.isna(labels).sum()):
        raise ValueError(f"y: {n_missing} of {len(labels)} source rows have no label (NaN or None); leave them out")
    if labels.dtype != object:
        return labels
    if len({isinstance(label, str) for label in labels.flat}) > 1:
        raise ValueError("y: some labels are texts and some are not; make all of them texts, or all numbers")
    return np.array(labels.tolist())


def read_domains(sample_domain: Any, x: Inputs) -> Array | None:
    """The (n,) int64 domain numbers, as in skada positive for sources and negative for the target; None if None.

    Raises:
        ValueError: it does not hold one whole number per row, contains 0, or has no source or no target.
    """
    if sample_domain is None:
        return None
    numbers = whole_numbers(sample_domain, x)
    signs = set(np.sign(numbers))
    if signs != {-1, 1}:
        what = "0" if 0 in signs else "no source" if 1 not in signs else "no target"
        raise ValueError(
            f"sample_domain holds {what}; sources are positive, targets negative, and every cross-validation fold "
            "needs both: stratify by sample_domain"
        )
    return numbers


def whole_numbers(sample_domain: Any, x: Inputs) -> Array:
    """The (n,) int64 domain numbers; raises ValueError if it does not hold one whole number per row."""
    # As an array: scikit-learn would turn pandas' own whole numbers into floats.
    given = plain_labels(np.asarray(_unmasked("sample_domain", sample_domain)))
    numbers: Array = column_or_1d(np.array(given.tolist()) if given.dtype == object else given)
    check_consistent_length(x, numbers)
    whole = numbers.dtype.kind in "iu" or (numbers.dtype.kind == "f" and bool((numbers % 1 == 0).all()))
    if not whole:
        raise ValueError(
            f"sample_domain must hold whole numbers, not {numbers.dtype}: sources positive, targets negative"
        )
    if (np.abs(numbers.astype(float)) >= _PAST_INT64).any():
        raise ValueError("sample_domain must hold numbers of at most 64 bits; number the domains from 1")
    return numbers.astype(np.int64)


def in_float32(x: Any, numbers: Array | None) -> Any:
    """Rows as a network sees them.

    Raises:
        ValueError: float32 does not hold a number, or tells those of a column in a domain apart.
    """
    if isinstance(x, np.ndarray):
        domain = np.zeros(len(x)) if numbers is None else np.maximum(numbers, -1)
        lost = np.logical_or.reduce([lost_in_float32(x[domain == number]) for number in np.unique(domain)])
        if lost.any():
            what = f"float32 does not tell the numbers of column {np.argmax(lost)} apart"
            raise ValueError(f"X: {what}; subtract their mean first, such as by StandardScaler")
    return check_array(x, accept_sparse="csr", dtype=np.float32, input_name="X")


def check_device(device: str) -> None:
    """Refuses a device that is not here.

    Raises:
        ValueError: it is neither the CPU nor a GPU that PyTorch finds.
    """
    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError):
        kind = None
    if kind not in {"cpu", "cuda"}:
        raise ValueError(f"device: must be 'cpu' or 'cuda', not {device!r}")
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device: PyTorch finds no GPU here for {device!r}; use 'cpu'")
