"""Examples as tensors on a device: dense, sparse rows, or bytes that become numbers batch by batch; and labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import Array, DataError, Inputs, Task
from msda_bench.functional import SparseRows, lost_in_float32

if TYPE_CHECKING:
    import scipy.sparse


_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class HostBytes:
    """Rows of arrays, copied only when a batch of them is needed.

    Processes that train on the same files share the system's cache of them, and each holds one batch only.

    Attributes:
        arrays: (m, *shape) uint8 each, read-only.
        rows: (n, 2) int64, on the host: the array of each example and its row there.
        device: where batches go.
    """

    arrays: tuple[Array, ...]
    rows: Tensor
    device: torch.device

    @classmethod
    def of(cls, array: Array, rows: Array, device: torch.device) -> HostBytes:
        """The rows (n,) of one array."""
        places = torch.from_numpy(np.array(rows, np.int64))
        first = torch.zeros_like(places)
        return cls((array,), torch.stack([first, places], 1), device)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, *shape)."""
        return (len(self.rows), *self.arrays[0].shape[1:])

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def concatenate(parts: Sequence[HostBytes]) -> HostBytes:
        """The examples of all parts, in order; an array that several parts share is held once."""
        arrays: list[Array] = []
        places: dict[int, int] = {}
        rows = []
        for part in parts:
            for array in part.arrays:
                if id(array) not in places:
                    places[id(array)] = len(arrays)
                    arrays.append(array)
            numbers = torch.tensor([places[id(array)] for array in part.arrays])
            array_of, row_of = part.rows.unbind(1)
            rows.append(torch.stack([numbers[array_of], row_of], 1))
        return HostBytes(tuple(arrays), torch.cat(rows), parts[0].device)

    def take(self, rows: Tensor) -> HostBytes:
        """The examples at (n,) int64 rows, not yet copied."""
        return HostBytes(self.arrays, self.rows[rows.cpu()], self.device)

    def gather(self, rows: Tensor) -> Tensor:
        """The bytes (*rows.shape, *shape) on the device of the examples at int64 rows; a GPU need not wait for them."""
        array_of, row_of = self.rows[rows.cpu().flatten()].numpy().T
        shape = self.shape[1:]
        on_gpu = self.device.type == "cuda"
        examples = torch.empty(len(row_of), *shape, dtype=torch.uint8, pin_memory=on_gpu)
        for number, array in enumerate(self.arrays):
            (of_it,) = np.nonzero(array_of == number)
            examples.numpy()[of_it] = cast("Array", array[row_of[of_it]])
        return examples.to(self.device, non_blocking=True).view(*rows.shape, *shape)

    def resident(self) -> Tensor:
        """All bytes (n, *shape), on the device."""
        examples = torch.empty(self.shape, dtype=torch.uint8, device=self.device)
        for start in range(0, len(self), _AT_ONCE):
            stop = min(start + _AT_ONCE, len(self))
            examples[start:stop] = self.gather(torch.arange(start, stop))
        return examples


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
        DataError: the inputs are neither numbers nor a sparse matrix, or float32 does not tell the numbers apart.
    """
    if not isinstance(inputs, np.ndarray):
        rows = _sparse_rows(cast("scipy.sparse.csr_matrix", inputs))
        return rows if device.type == "cpu" else rows.to_dense().to(device)
    refuse_texts(inputs)
    if lost_in_float32(inputs).any():
        what = "some inputs differ too little beside their size for float32"
        raise DataError(f"{what}; have the dataset standardise them, or subtract their mean in the data")
    copied = np.array(inputs, dtype=np.float32, order="C")
    return torch.from_numpy(copied).to(device)


def refuse_texts(inputs: Array) -> None:
    """Refuses inputs that are no numbers.

    Raises:
        DataError: the dataset left them as they are.
    """
    if inputs.dtype.kind not in "fiub":
        raise DataError(f"a dataset gave inputs of dtype {inputs.dtype}; its fit() must map them to numbers")


def _sparse_rows(matrix: scipy.sparse.csr_matrix) -> SparseRows:
    def tensor(values: Array, kind: type[np.generic]) -> Tensor:
        return torch.from_numpy(np.array(values, dtype=kind, order="C"))

    return SparseRows(
        columns=tensor(matrix.indices, np.int64),
        values=tensor(matrix.data, np.float32),
        offsets=tensor(matrix.indptr, np.int64),
        width=int(matrix.shape[1]),
    )


def fits_gpu(arrays: Sequence[Array], device: torch.device) -> bool:
    """Whether the device holds the bytes: a GPU does if they take at most a quarter of its whole memory."""
    if device.type != "cuda":
        return False
    total = torch.cuda.get_device_properties(device).total_memory
    return _GPU_SHARE * sum(array.nbytes for array in arrays) <= total


def gathered(parts: Iterable[Examples], rows: int) -> Examples:
    """The examples of all parts, of so many rows, in order; numbers are never held twice."""
    rest = iter(parts)
    first = next(rest)
    if isinstance(first, HostBytes):
        return HostBytes.concatenate([first, *cast("Iterator[HostBytes]", rest)])
    if isinstance(first, SparseRows):
        return SparseRows.concatenate([first, *cast("Iterator[SparseRows]", rest)])
    whole = first.new_empty((rows, *first.shape[1:]))
    start = 0
    for part in chain([first], cast("Iterator[Tensor]", rest)):
        whole[start : start + len(part)] = part
        start += len(part)
    return whole


def take(examples: Examples, rows: Tensor) -> Examples:
    """The examples at (n,) int64 rows, of the same kind."""
    if isinstance(examples, Tensor):
        return examples[rows]
    return examples.take(rows)


def batch_of(examples: Examples, rows: Tensor) -> Numbers:
    """The examples at int64 rows as a network gets them, bytes divided by 255 in float32."""
    if isinstance(examples, SparseRows):
        return examples.take(rows)
    if isinstance(examples, HostBytes):
        return _numbers(examples.gather(rows))
    # Three times as fast as `examples[rows]`: it copies whole rows.
    chosen = examples.index_select(0, rows.flatten())
    return _numbers(chosen.view(*rows.shape, *examples.shape[1:]))


def where_rows(examples: Examples, rows: Tensor) -> Tensor:
    """The rows on the device where `batch_of` needs them: of a whole epoch at once, so that no step waits for a GPU."""
    if isinstance(examples, HostBytes):
        return rows.cpu()
    return rows


def all_numbers(examples: Examples) -> Numbers:
    """All examples as numbers."""
    if isinstance(examples, SparseRows):
        return examples
    if isinstance(examples, HostBytes):
        return batch_of(examples, torch.arange(len(examples)))
    return _numbers(examples)


def chunk(examples: Examples) -> int:
    """Examples in one forward pass of an evaluation; more would leave the cache, or take too much memory.

    256, but at most 10 MB of input on the CPU and 160 MB on a GPU, which is 16 and 256 images of 224 x 224.
    """
    if isinstance(examples, SparseRows):
        return _CHUNK
    most_bytes = _CHUNK_BYTES if examples.device.type == "cpu" else _GPU_CHUNK_BYTES
    bytes_of_one = 4 * math.prod(examples.shape[1:])
    return max(1, min(_CHUNK, most_bytes // bytes_of_one))


def device_of(examples: Examples) -> torch.device:
    """Where examples are, or where bytes on the host go; sparse rows are on the CPU."""
    if isinstance(examples, SparseRows):
        return torch.device("cpu")
    return examples.device


def dense(examples: Numbers) -> Tensor:
    """Examples as a dense tensor."""
    return examples.to_dense() if isinstance(examples, SparseRows) else examples


def _numbers(x: Tensor) -> Tensor:
    if x.dtype != torch.uint8:
        return x
    # By a tensor: a GPU would multiply by the reciprocal of a number, and its last bits would differ from the CPU's.
    largest = torch.full((), 255.0, device=x.device)
    return x.to(torch.float32).div_(largest)


def has_flat_view(parameter: Tensor) -> bool:
    """Whether a parameter's memory is one dense run, in row-major or in channels-last order."""
    return parameter.is_contiguous() or parameter.is_contiguous(memory_format=_channels_last(parameter))


def flat(values: Tensor, like: Tensor) -> Tensor:
    """The values as a vector in the order of a parameter's memory; of the parameter itself, a view."""
    if not like.is_contiguous():
        values = values.movedim(1, -1)
    return values.reshape(-1)


def _channels_last(values: Tensor) -> torch.memory_format:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return formats.get(values.dim(), torch.contiguous_format)


class Unit(NamedTuple):
    """The unit of a regression's labels, of which every model learns and predicts (y - mean) / deviation."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, labels: Array) -> Unit:
        """The unit of the (n,) labels of the sources' training rows; if all are equal, they are only centred."""
        y = labels.astype(np.float64)
        deviation = float(y.std()) if y.min() < y.max() else 1.0
        return cls(float(y.mean()), deviation)

    def restored(self, outputs: Tensor) -> Tensor:
        """Predictions or labels of a model in the user's unit, float64."""
        return outputs.double() * self.deviation + self.mean


def as_labels(task: Task, y: Array, device: torch.device, unit: Unit | None = None) -> Tensor:
    """Labels on the device as models learn them: int64 classes, or float32 numbers.

    Raises:
        DataError: float32 does not tell the numbers apart.
    """
    if task.has_classes:
        return torch.from_numpy(y.astype(np.int64)).to(device)
    numbers = y if unit is None else (y.astype(np.float64) - unit.mean) / unit.deviation
    if lost_in_float32(numbers).any():
        remedy = "scale them, or leave out the domain far off"
        if unit is None:
            remedy = "remove `standardise_labels: false`"
        raise DataError(f"labels from {y.min():.10g} to {y.max():.10g} are too close for float32; {remedy}")
    return torch.from_numpy(numbers.astype(np.float32)).to(device)


def no_labels(task: Task, count: int, device: torch.device) -> Tensor:
    """Labels that no loss accepts: -1 or NaN."""
    dtype = torch.int64 if task.has_classes else torch.float32
    return torch.full((count,), task.rules.unknown, dtype=dtype, device=device)
