"""Examples as tensors on a device: dense, rows of a sparse matrix, or bytes that become numbers batch by batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import Array, DataError, Inputs
from msda_bench.engine.host_bytes import HostBytes
from msda_bench.functional import SparseRows

if TYPE_CHECKING:
    import scipy.sparse

Numbers: TypeAlias = Tensor | SparseRows
"""A batch as a network gets it."""
Examples: TypeAlias = Numbers | HostBytes
"""All examples of a part of the data: numbers, or bytes in a uint8 tensor or on the host."""
_GPU_SHARE = 4
_CHUNK = 256
_CHUNK_BYTES, _GPU_CHUNK_BYTES = 10_000_000, 160_000_000


def as_examples(inputs: Inputs, device: torch.device) -> Numbers:
    """float32 examples on the device, copied, since a dataset may keep what it returned and change it.

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


def fits_gpu(arrays: Sequence[Array], device: torch.device) -> bool:
    """Whether the device holds the bytes: a GPU does if they take at most a quarter of its whole memory."""
    if device.type != "cuda":
        return False
    total = torch.cuda.get_device_properties(device).total_memory
    return _GPU_SHARE * sum(array.nbytes for array in arrays) <= total


def concatenate(parts: Sequence[Examples]) -> Examples:
    """The examples of all parts, in order."""
    if isinstance(parts[0], Tensor):
        return torch.cat([cast("Tensor", part) for part in parts])
    if isinstance(parts[0], HostBytes):
        return HostBytes.concatenate([cast("HostBytes", part) for part in parts])
    return SparseRows.concatenate([cast("SparseRows", part) for part in parts])


def gathered(parts: Iterator[Examples], rows: int) -> Examples:
    """The examples of all parts, of so many rows, in order; numbers are never held twice."""
    first = next(parts)
    if not isinstance(first, Tensor):
        return concatenate([first, *parts])
    whole = first.new_empty((rows, *first.shape[1:]))
    whole[: len(first)] = first
    start = len(first)
    for part in parts:
        whole[start : start + len(part)] = cast("Tensor", part)
        start += len(part)
    return whole


def take(examples: Examples, rows: Tensor) -> Examples:
    """The examples at (n,) int64 rows, of the same kind."""
    return examples[rows] if isinstance(examples, Tensor) else examples.take(rows)


def batch_of(examples: Examples, rows: Tensor) -> Numbers:
    """The examples at int64 rows as a network gets them, bytes divided by 255 in float32."""
    if isinstance(examples, SparseRows):
        return examples.take(rows)
    found = examples.gather(rows) if isinstance(examples, HostBytes) else examples[rows]
    return _numbers(found)


def where_rows(examples: Examples, rows: Tensor) -> Tensor:
    """The rows where `batch_of` needs them; called for a whole epoch, so that its steps need not wait for a GPU."""
    return rows.cpu() if isinstance(examples, HostBytes) else rows


def whole(examples: Examples) -> Numbers:
    """All examples as numbers."""
    if isinstance(examples, HostBytes):
        return batch_of(examples, torch.arange(len(examples)))
    return _numbers(examples) if isinstance(examples, Tensor) else examples


def chunk(examples: Examples) -> int:
    """Examples in one forward pass of an evaluation; more would leave the cache, or take too much memory.

    256, but at most 10 MB of input on the CPU and 160 MB on a GPU, which is 16 and 256 images of 224 x 224.
    """
    if isinstance(examples, SparseRows):
        return _CHUNK
    most = _CHUNK_BYTES if examples.device.type == "cpu" else _GPU_CHUNK_BYTES
    return max(1, min(_CHUNK, most // (4 * math.prod(examples.shape[1:]))))


def dense(examples: Numbers) -> Tensor:
    """The same examples as a dense tensor."""
    return examples.to_dense() if isinstance(examples, SparseRows) else examples


def _numbers(x: Tensor) -> Tensor:
    # By a tensor: a GPU would multiply by the reciprocal of a number, and its last bits would differ from the CPU's.
    return x.to(torch.float32).div_(torch.full((), 255.0, device=x.device)) if x.dtype == torch.uint8 else x
