"""Checks of a user's arrays: another model's scores, and missing numbers among the inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from msda_bench.api import Array, DataError
from msda_bench_builtin.datasets.tables.signals import padded_axes


def scores_of(path: Path, what: str, scores: Array, shape: tuple[int, int]) -> Array:
    """A score for each row and class, or a number for each row."""
    if scores.shape != shape or scores.dtype.kind not in "fiu":
        remedy = f"predictions are classes (n,), or a number for each class {shape}, in their order"
        raise DataError(f"{path}: {what} holds {scores.dtype} of shape {scores.shape}; {remedy}")
    with np.errstate(over="ignore"):
        given = scores.astype(np.float32)
    if np.isinf(given).any():
        raise DataError(f"{path}: {what} holds a number that is not finite in float32; correct it")
    return given


def has_gaps(path: Path, name: str, x: Array, *, allowed: bool) -> bool:
    """Whether numbers are missing (NaN).

    Raises:
        DataError: inputs are not finite otherwise, or have gaps that are not `allowed`, or a row has no number.
    """
    with np.errstate(over="ignore"):
        finite = np.isfinite(x.astype(np.float32, copy=False))
    if finite.all():
        return False
    missing: Array = np.isnan(x)
    what = f"array {name!r}"
    axes = tuple(range(1, x.ndim))
    infinite = (~finite & ~missing).any(axes)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise DataError(
            f"{path}: row {row} of {what} holds a number that is not finite in float32; correct or remove the row"
        )
    if allowed:
        empty = missing.all(axes)
        if empty.any():
            raise DataError(f"{path}: row {int(np.argmax(empty))} of {what} has no number, NaN alone; remove the row")
        return True
    lacking = missing.any(axes)
    many = f"{np.count_nonzero(lacking)} of {len(x)} rows of {what}, first row {int(np.argmax(lacking))}"
    signals = "`signals: channels_first` or `channels_last` (`--signals`) reads them with gaps"
    if padded_axes(missing):
        raise DataError(f"{path}: {many}, begin or end in NaN, the padding of series of different lengths; {signals}")
    remedy = "fill them, such as by numpy.nan_to_num, or remove these rows"
    remedy += f"; {signals}" if x.ndim == len(("row", "channels", "time")) else ""
    raise DataError(f"{path}: {many}, have missing values (NaN); {remedy}")
