"""Compares rows of several domains: which are equal, and which row is the nearest, on no scale but their own."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from msda_bench.api import Array, DataError, Inputs

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Matrix: TypeAlias = "Array | csr_matrix"
_CELLS = 16
"""Images are averaged to at most so many cells a side."""
_CHUNK, _NUMBERS = 1024, 1 << 25
"""The maximum numbers of rows, and of their values, that are read at once."""
_FEWEST = 8
"""With fewer columns two rows that have nothing to do with each other are near too often."""


def digests(x: Inputs) -> Array:
    """A number for each row, (n,) uint64, that only equal rows share: of its bytes, text, or stored values."""
    if isinstance(x, np.ndarray):
        rows: Iterator[bytes] = (
            str(row).encode(errors="surrogatepass") if x.dtype == object else row.tobytes() for row in x
        )
    else:
        rows = _stored(x)
    return np.array([int.from_bytes(hashlib.blake2b(row, digest_size=8).digest()) for row in rows], np.uint64)


def _stored(x: csr_matrix) -> Iterator[bytes]:
    x = x.copy()
    x.sum_duplicates()
    x.eliminate_zeros()
    for first, last in zip(x.indptr, x.indptr[1:], strict=False):
        yield x.indices[first:last].astype(np.int64).tobytes() + x.data[first:last].tobytes()


@dataclass(frozen=True, eq=False)
class Vectors:
    """The rows of a domain as vectors.

    Attributes:
        count: of rows.
        width: values that a vector stores, on average.
        take: makes the vectors of some rows, float32.
        chunk: the number of rows to be read at once.
        telling: whether a small distance tells that two rows have the same origin.
    """

    count: int
    width: int
    take: Callable[[Any], Matrix]
    chunk: int = _CHUNK
    telling: bool = True

    def chunks(self) -> Iterator[tuple[slice, Matrix]]:
        """All rows in order, some at a time."""
        for start in range(0, self.count, self.chunk):
            rows = slice(start, min(start + self.chunk, self.count))
            yield rows, self.take(rows)


def vectors(domains: Mapping[str, Inputs]) -> dict[str, Vectors]:
    """Vectors of each domain's rows, whose distances do not depend on the columns' units nor on the domain's mean.

    Columns of a table have mean 0 and variance 1 within their domain. Arrays with more axes, such as images, are
    averaged to at most 16 cells along each of the last two, less the domain's mean, with mean 0 and length 1. Bags of
    words, and texts as bags of words and pairs, are weighted by rarity in their domain, with length 1.

    Raises:
        DataError: rows of two domains have different shapes or kinds.
    """
    shapes = {name: _shape(x) for name, x in domains.items()}
    first = next(iter(shapes))
    for name, shape in shapes.items():
        if shape != shapes[first]:
            raise DataError(f"rows of {first!r} are {shapes[first]}, but those of {name!r} {shape}")
    if shapes[first] == "texts":
        domains = _bags(cast("Mapping[str, Array]", domains))
    return {name: _dense(x) if isinstance(x, np.ndarray) else _sparse(x) for name, x in domains.items()}


def _shape(x: Inputs) -> str:
    if isinstance(x, np.ndarray) and x.dtype == object:
        return "texts"
    return f"{'' if isinstance(x, np.ndarray) else 'sparse '}{tuple(x.shape[1:])}"


def _bags(texts: Mapping[str, Array]) -> dict[str, Inputs]:
    from msda_bench.functional import ngram_counts

    counts, _ = ngram_counts([str(text) for rows in texts.values() for text in rows], 2)
    ends = np.cumsum([len(rows) for rows in texts.values()])
    return {name: counts[end - len(rows) : end] for (name, rows), end in zip(texts.items(), ends, strict=True)}


def _sparse(x: csr_matrix) -> Vectors:
    from scipy.sparse import diags

    rarity = np.log1p(x.shape[0] / np.maximum(np.bincount(x.indices, minlength=x.shape[1]), 1)).astype(np.float32)

    def take(rows: Any) -> Matrix:
        weighted = x[rows].astype(np.float32).multiply(rarity).tocsr()
        return diags((1 / _positive(np.sqrt(_squares(weighted)))).astype(np.float32)) @ weighted

    return Vectors(x.shape[0], x.nnz // max(x.shape[0], 1), take)


def _dense(x: Array) -> Vectors:
    images = x.ndim > len(("rows", "columns"))
    chunk = max(1, min(_CHUNK, _NUMBERS // max(1, math.prod(x.shape[1:]))))
    parts = [slice(start, start + chunk) for start in range(0, len(x), chunk)]

    def raw(rows: Any) -> Array:
        return _shrunk(x[rows]) if images else x[rows].reshape(len(x[rows]), -1).astype(np.float64)

    with np.errstate(all="ignore"):  # numbers that are not finite make a run diverge, which training reports
        mean = sum(raw(part).sum(0, dtype=np.float64) for part in parts) / max(len(x), 1)
        scale: Array = np.ones(1)
        if not images:
            squares = sum(((raw(part) - mean) ** 2).sum(0) for part in parts)
            deviation = np.sqrt(squares / max(len(x), 1))
            # Rounding can make the deviation of a constant column slightly larger than 0.
            scale = np.where(deviation > 1e-9 * abs(mean), deviation, np.inf)

    def take(rows: Any) -> Matrix:
        with np.errstate(all="ignore"):
            rescaled = np.nan_to_num((raw(rows) - mean) / scale).astype(np.float32)
        if images:
            rescaled -= rescaled.mean(1, keepdims=True)
            rescaled /= _positive(np.sqrt(_squares(rescaled)))[:, None]
        return rescaled

    width = int(np.size(mean))
    return Vectors(len(x), width, take, chunk, telling=images or width >= _FEWEST)


def _shrunk(x: Array) -> Array:
    for axis in (-1, -2) if x.ndim > len(("rows", "channels", "columns")) else (-1,):
        if (side := x.shape[axis]) > _CELLS:
            edges = np.arange(_CELLS + 1) * side // _CELLS
            sums = np.add.reduceat(x, edges[:-1], axis, dtype=np.float32)
            x = sums / np.diff(edges).astype(np.float32).reshape(-1, *(1,) * (-1 - axis))
    return x.reshape(len(x), -1).astype(np.float32)


def _squares(x: Matrix) -> Array:
    return np.asarray((x * x).sum(1) if isinstance(x, np.ndarray) else x.multiply(x).sum(1)).ravel()


def _positive(x: Array) -> Array:
    return np.where(x > 0, x, 1)


@dataclass(eq=False)
class Nearest:
    """The rows of a domain that are nearest to some rows, found while the domain passes by.

    Attributes:
        rows: (q,) int64, some rows of a domain.
        queries: (q, width), their vectors.
        trained: (n,) bool, the rows of the other domain that a run trains on.
        inside: whether it is the same domain; a row is no neighbour of itself.
        nearest: (q,) int64, the nearest row; 0 if there is none.
        distance: (q,) to the nearest row; infinite if there is none.
        distance_trained: (q,) to the nearest row that is trained on.
    """

    rows: Array
    queries: Matrix
    trained: Array
    inside: bool
    nearest: Array = field(init=False)
    distance: Array = field(init=False)
    distance_trained: Array = field(init=False)

    def __post_init__(self) -> None:
        """Starts with no neighbour."""
        self.nearest = np.zeros(len(self.rows), np.int64)
        self.distance, self.distance_trained = np.full((2, len(self.rows)), np.inf)
        self._squares = _squares(self.queries)

    def see(self, part: slice, chunk: Matrix) -> None:
        """Compares with the vectors of a part of the domain."""
        product = self.queries @ chunk.T
        product = product if isinstance(product, np.ndarray) else product.toarray()
        distances = np.sqrt(np.maximum(self._squares[:, None] + _squares(chunk) - 2 * product, 0))
        if self.inside:
            here = np.flatnonzero((self.rows >= part.start) & (self.rows < part.stop))
            distances[here, self.rows[here] - part.start] = np.inf
        place = distances.argmin(1)
        distance = distances[np.arange(len(place)), place]
        self.nearest = np.where(distance < self.distance, part.start + place, self.nearest)
        self.distance = np.minimum(self.distance, distance)
        trained = distances[:, self.trained[part]].min(1, initial=np.inf)
        self.distance_trained = np.minimum(self.distance_trained, trained)
