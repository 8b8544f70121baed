"""Compares rows of several domains: which are equal, and how far away the nearest row is."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from msda_bench.api import Array, DataError, Inputs

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Matrix: TypeAlias = "Array | csr_matrix"
_CELLS = 16
"""Images are averaged to at most so many cells a side."""
_CHUNK = 1024
"""The number of rows that are compared at once."""


def digests(x: Inputs) -> Array:
    """A number for each row, (n,) uint64, that only equal rows share: a digest of its bytes, text, or stored values."""
    numbers = []
    for row in _contents(x):
        digest = hashlib.blake2b(row, digest_size=8).digest()
        numbers.append(int.from_bytes(digest))
    return np.array(numbers, np.uint64)


def _contents(x: Inputs) -> Iterator[bytes]:
    """The bytes of each row, equal for equal rows."""
    if not isinstance(x, np.ndarray):
        x = x.copy()
        x.sum_duplicates()
        x.eliminate_zeros()
        for first, last in itertools.pairwise(x.indptr):
            columns = x.indices[first:last].astype(np.int64)
            yield columns.tobytes() + x.data[first:last].tobytes()
    elif x.dtype == object:
        for text in x:
            yield str(text).encode(errors="surrogatepass")
    else:
        for row in x:
            yield row.tobytes()


def vectors(domains: Mapping[str, Inputs]) -> dict[str, Matrix]:
    """Float32 vectors of each domain's rows, whose distances depend on no column's unit and not on the domain's mean.

    Columns of a table have mean 0 and variance 1 within their domain. Arrays with more axes, such as images, are
    averaged to at most 16 cells along each of the last two, less the domain's mean, with mean 0 and length 1. Bags of
    words, and texts as bags of words and pairs, are weighted by rarity in their domain, with length 1.

    Raises:
        DataError: rows of two domains have different shapes or kinds.
    """
    shapes = {name: _shape(x) for name, x in domains.items()}
    first, usual = next(iter(shapes.items()))
    for name, shape in shapes.items():
        if shape != usual:
            raise DataError(f"rows of {first!r} are {usual}, but those of {name!r} {shape}")
    if usual == "texts":
        domains = _bags(cast("Mapping[str, Array]", domains))
    found: dict[str, Matrix] = {}
    for name, x in domains.items():
        found[name] = _dense(x) if isinstance(x, np.ndarray) else _sparse(x)
    return found


def _shape(x: Inputs) -> str:
    """The kind and shape of a domain's rows, in words."""
    if not isinstance(x, np.ndarray):
        return f"sparse {tuple(x.shape[1:])}"
    return "texts" if x.dtype == object else str(tuple(x.shape[1:]))


def _bags(texts: Mapping[str, Array]) -> dict[str, Inputs]:
    """The texts of each domain as counts of units and pairs of them: words, or characters of unspaced writing."""
    from msda_bench.functional import ngram_counts, unspaced

    every: list[str] = []
    for rows in texts.values():
        every += map(str, rows)
    counts, _ = ngram_counts(every, 2, units="characters" if unspaced(every) else "words")
    bags: dict[str, Inputs] = {}
    start = 0
    for name, rows in texts.items():
        bags[name] = counts[start : start + len(rows)]
        start += len(rows)
    return bags


def _sparse(x: csr_matrix) -> Matrix:
    from scipy.sparse import diags

    rows_with = np.maximum(np.bincount(x.indices, minlength=x.shape[1]), 1)
    rarity = np.log1p(x.shape[0] / rows_with).astype(np.float32)
    weighted = x.astype(np.float32).multiply(rarity).tocsr()
    lengths = _positive(np.sqrt(_squares(weighted)))
    return diags((1 / lengths).astype(np.float32)) @ weighted


def _dense(x: Array) -> Matrix:
    with np.errstate(all="ignore"):
        x = _filled(x)
        if x.ndim == len(("rows", "columns")):
            return _columns(x)
        return _images(x)


def _columns(x: Array) -> Array:
    """Columns with mean 0 and variance 1."""
    mean = x.mean(0, dtype=np.float64)
    deviation = x.std(0, dtype=np.float64)
    # Rounding can make the deviation of a constant column slightly larger than 0.
    scale = np.where(deviation > 1e-9 * abs(mean), deviation, np.inf)
    return np.asarray(np.nan_to_num((x - mean) / scale), np.float32)


def _images(x: Array) -> Array:
    """Small images less their mean, each with mean 0 and length 1."""
    if not len(x):
        return np.empty((0, 1), np.float32)
    chunks = [_shrunk(x[start : start + _CHUNK]) for start in range(0, len(x), _CHUNK)]
    rows = np.concatenate(chunks)
    mean = rows.mean(0, dtype=np.float64)
    rows = np.nan_to_num(rows - mean).astype(np.float32)
    rows -= rows.mean(1, keepdims=True)
    lengths = _positive(np.sqrt(_squares(rows)))
    return cast("Array", rows / lengths[:, None])


def _filled(x: Array) -> Array:
    """Rows with their columns' means in place of numbers that are not finite, such as gaps in signals."""
    known = np.isfinite(x)
    if known.all():
        return x
    sums = np.where(known, x, 0).sum(0, dtype=np.float64)
    mean = sums / np.maximum(known.sum(0), 1)
    return np.where(known, x, mean).astype(x.dtype)


def _shrunk(x: Array) -> Array:
    """Images as rows of their cells' means."""
    x = _averaged(x, -1)
    if x.ndim > len(("rows", "channels", "columns")):
        x = _averaged(x, -2)
    return x.reshape(len(x), -1).astype(np.float32)


def _averaged(x: Array, axis: int) -> Array:
    """Means over at most 16 stretches of an axis, counted from the end."""
    side = x.shape[axis]
    if side <= _CELLS:
        return x
    edges = np.arange(_CELLS + 1) * side // _CELLS
    sums: Array = np.add.reduceat(x, edges[:-1], axis, dtype=np.float32)
    lengths = np.diff(edges).astype(np.float32)
    axes_behind = [1] * (-1 - axis)
    return np.asarray(sums / lengths.reshape(-1, *axes_behind))


def _squares(x: Matrix) -> Array:
    """The squared length of each row."""
    products = x * x if isinstance(x, np.ndarray) else x.multiply(x)
    return np.asarray(products.sum(1)).ravel()


def _positive(x: Array) -> Array:
    """Lengths to divide by: 1 in place of 0."""
    return np.where(x > 0, x, 1)


def distances(queries: Matrix, rows: Matrix, own: Array | None = None) -> Array:
    """The distance from each query to the nearest row, (q,) float; infinite if there is none.

    `own` are the places of the queries among the rows, where they are of the same domain: none is its own neighbour.
    """
    nearest = np.full(queries.shape[0], np.inf)
    squares = _squares(queries)
    for start in range(0, rows.shape[0], _CHUNK):
        chunk = rows[start : start + _CHUNK]
        products = queries @ chunk.T
        if not isinstance(products, np.ndarray):
            products = products.toarray()
        squared = squares[:, None] + _squares(chunk) - 2 * products
        apart = np.sqrt(np.maximum(squared, 0))
        if own is not None:
            here = np.flatnonzero((own >= start) & (own < start + _CHUNK))
            apart[here, own[here] - start] = np.inf
        nearest = np.minimum(nearest, apart.min(1))
    return nearest
