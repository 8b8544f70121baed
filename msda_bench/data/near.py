"""Compares rows of several domains: which are equal, and how far the nearest row is, on no scale but their own."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
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
    """A number for each row, (n,) uint64, that only equal rows share: of its bytes, text, or stored values."""
    if isinstance(x, np.ndarray):
        rows = (str(row).encode(errors="surrogatepass") if x.dtype == object else row.tobytes() for row in x)
    else:
        x = x.copy()
        x.sum_duplicates()
        x.eliminate_zeros()
        parts = (slice(first, last) for first, last in itertools.pairwise(x.indptr))
        rows = (x.indices[part].astype(np.int64).tobytes() + x.data[part].tobytes() for part in parts)
    return np.array([int.from_bytes(hashlib.blake2b(row, digest_size=8).digest()) for row in rows], np.uint64)


def vectors(domains: Mapping[str, Inputs]) -> dict[str, Matrix]:
    """Float32 vectors of each domain's rows, whose distances depend on no column's unit and not on the domain's mean.

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
    from msda_bench.functional import ngram_counts, unspaced

    every = [str(text) for rows in texts.values() for text in rows]
    counts, _ = ngram_counts(every, 2, units="characters" if unspaced(every) else "words")
    ends = np.cumsum([len(rows) for rows in texts.values()])
    return {name: counts[end - len(rows) : end] for (name, rows), end in zip(texts.items(), ends, strict=True)}


def _sparse(x: csr_matrix) -> Matrix:
    from scipy.sparse import diags

    rarity = np.log1p(x.shape[0] / np.maximum(np.bincount(x.indices, minlength=x.shape[1]), 1)).astype(np.float32)
    weighted = x.astype(np.float32).multiply(rarity).tocsr()
    return diags((1 / _positive(np.sqrt(_squares(weighted)))).astype(np.float32)) @ weighted


def _dense(x: Array) -> Matrix:
    with np.errstate(all="ignore"):
        x = _filled(x)
        if x.ndim > len(("rows", "columns")):
            parts = [_shrunk(x[start : start + _CHUNK]) for start in range(0, len(x), _CHUNK)]
            rows = np.concatenate(parts) if parts else np.empty((0, 1), np.float32)
            rows = np.nan_to_num(rows - rows.mean(0, dtype=np.float64)).astype(np.float32)
            rows -= rows.mean(1, keepdims=True)
            return cast("Array", rows / _positive(np.sqrt(_squares(rows)))[:, None])
        mean, deviation = x.mean(0, dtype=np.float64), x.std(0, dtype=np.float64)
        # Rounding can make the deviation of a constant column slightly larger than 0.
        scale = np.where(deviation > 1e-9 * abs(mean), deviation, np.inf)
        return np.nan_to_num((x - mean) / scale).astype(np.float32)


def _filled(x: Array) -> Array:
    """Rows with their columns' means in place of numbers that are not finite, such as gaps in signals."""
    known = np.isfinite(x)
    if known.all():
        return x
    mean = np.where(known, x, 0).sum(0, dtype=np.float64) / np.maximum(known.sum(0), 1)
    return np.where(known, x, mean).astype(x.dtype)


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


def distances(queries: Matrix, rows: Matrix, own: Array | None = None) -> Array:
    """The distance from each query to the nearest row, (q,) float; infinite if there is none.

    `own` are the places of the queries among the rows, where they are of the same domain: none is its own neighbour.
    """
    nearest, squares = np.full(queries.shape[0], np.inf), _squares(queries)
    for start in range(0, rows.shape[0], _CHUNK):
        chunk = rows[start : start + _CHUNK]
        product = queries @ chunk.T
        product = product if isinstance(product, np.ndarray) else product.toarray()
        apart = np.sqrt(np.maximum(squares[:, None] + _squares(chunk) - 2 * product, 0))
        if own is not None:
            here = np.flatnonzero((own >= start) & (own < start + _CHUNK))
            apart[here, own[here] - start] = np.inf
        nearest = np.minimum(nearest, apart.min(1))
    return nearest
