"""Rows of one array as domains, by skada's convention: sources are positive, targets negative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from sklearn.utils import check_consistent_length, column_or_1d

from msda_bench.api import Array, Inputs

TARGET = "target"


@dataclass(frozen=True, eq=False)
class Domains:
    """The arrays that a run trains on; no label of the target is among them.

    Attributes:
        sources: of each source by name its inputs and labels, in the order of their numbers.
        target: the target's inputs.
    """

    sources: dict[str, tuple[Inputs, Array]]
    target: Inputs

    @property
    def emptied(self) -> Domains:
        """The same domains without examples."""
        none = np.arange(0)  # not a slice, which would keep the whole array in memory
        sources = {name: (rows_of(x, none), y[none]) for name, (x, y) in self.sources.items()}
        return Domains(sources, rows_of(self.target, none))


def rows_of(x: Inputs, rows: Array) -> Inputs:
    """Some rows of a dense or a sparse array."""
    return cast("Inputs", x[rows])


def labels_of(y: Any, rows: Array) -> Array:
    """Labels of some rows, of a kind that those rows alone decide: a None or a word in another row changes nothing."""
    found: Array = np.asarray(y, dtype=None if hasattr(y, "dtype") else object)[rows]
    return np.array(found.tolist()) if found.dtype == object else found


def read_domains(sample_domain: Any, x: Inputs) -> Array | None:
    """(n,) int64, positive of a source's rows and negative of the target's; None as it is given.

    Raises:
        ValueError: it is not one whole number a row, without 0, or names no source or no target.
    """
    if sample_domain is None:
        return None
    found: Array = column_or_1d(sample_domain)
    check_consistent_length(x, found)
    if found.dtype.kind not in "iu":
        raise ValueError(
            f"sample_domain must hold whole numbers, not {found.dtype}: sources positive, targets negative"
        )
    found = found.astype(np.int64)
    signs = set(np.sign(found))
    if signs != {-1, 1}:
        what = "0" if 0 in signs else "no source" if 1 not in signs else "no target"
        raise ValueError(
            f"sample_domain holds {what}; sources are positive, targets negative, and folds of a cross-validation "
            "need both: stratify them by sample_domain"
        )
    return found
