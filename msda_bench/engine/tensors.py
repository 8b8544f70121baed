"""Examples as tensors on a device: dense, or rows of a sparse matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import Array, DataError, Inputs
from msda_bench.functional import SparseRows

if TYPE_CHECKING:
    import scipy.sparse

Examples: TypeAlias = Tensor | SparseRows


def as_examples(inputs: Inputs, device: torch.device) -> Examples:
    """float32 examples on the device, in memory of their own: a dataset may keep what it gave, and change it.

    A sparse matrix stays sparse on the CPU; on a GPU it becomes dense, since fixed shapes serve a GPU better than
    skipped zeros.

    Raises:
        DataError: the inputs are neither numbers nor a sparse matrix.
    """
    if not isinstance(inputs, np.ndarray):
        rows = _sparse_rows(cast("scipy.sparse.csr_matrix", inputs))
        return rows if device.type == "cpu" else rows.to_dense().to(device)
    if inputs.dtype.kind not in "fiub":
        raise DataError(f"a dataset gave inputs of dtype {inputs.dtype}; its fit() must map them to numbers")
    return torch.from_numpy(np.array(inputs, dtype=np.float32, order="C")).to(device)


def _sparse_rows(matrix: scipy.sparse.csr_matrix) -> SparseRows:
    def tensor(values: Array, kind: type[np.generic]) -> Tensor:
        return torch.from_numpy(np.array(values, dtype=kind, order="C"))

    columns, offsets = tensor(matrix.indices, np.int64), tensor(matrix.indptr, np.int64)
    return SparseRows(columns, tensor(matrix.data, np.float32), offsets, int(matrix.shape[1]))


def concatenate(parts: Sequence[Examples]) -> Examples:
    """The examples of all parts, in order."""
    if isinstance(parts[0], Tensor):
        return torch.cat([cast("Tensor", part) for part in parts])
    return SparseRows.concatenate([cast("SparseRows", part) for part in parts])


def take(examples: Examples, rows: Tensor) -> Examples:
    """The examples at (n,) int64 rows."""
    return examples.take(rows) if isinstance(examples, SparseRows) else examples[rows]


def dense(examples: Examples) -> Tensor:
    """The same examples as a dense tensor."""
    return examples.to_dense() if isinstance(examples, SparseRows) else examples
