"""Columns of Parquet files as arrays: lists of numbers, as hubs store embeddings, and plain values beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from msda_bench.api import Array, DataError
from msda_bench_builtin.datasets.tables.folder import PARQUET, files_of
from msda_bench_builtin.datasets.tables.read import PARQUET_DAMAGE, listed, plain, text_of

if TYPE_CHECKING:
    import pyarrow as pa

_MOST = 1 << 29
"""The maximum number of values in the columns that are read; 4 GB if all have 8 bytes."""


def has_lists(path: Path) -> bool:
    """Whether a Parquet file, or the first one of a folder, has a column of lists of numbers; False if unreadable."""
    try:
        first = files_of(path, PARQUET)[0]
        return first.suffix.lower() in PARQUET and any(map(_is_list, fields_in(first).values()))
    except DataError:
        return False


def fields_in(path: Path) -> dict[str, Any]:
    """The types of the columns of a Parquet file by name.

    Raises:
        DataError: it is none, it is damaged, or pyarrow is not installed.
    """
    return {field.name: field.type for field in _opened(path).schema_arrow}


def shape_in(path: Path, name: str) -> tuple[tuple[int, ...], str] | None:
    """The shape and the kind of a column as an array's dtype has it, "O" for what is no array; None without the column.

    The length of lists that are not of a fixed size is not looked at, and is 0.
    """
    from pyarrow import types

    kind = fields_in(path).get(name)
    if kind is None:
        return None
    shape = [_opened(path).metadata.num_rows]
    while _is_nested_list(kind):
        shape.append(kind.list_size if types.is_fixed_size_list(kind) else 0)
        kind = kind.value_type
    if types.is_nested(kind):
        return tuple(shape), "O"
    letters = {"i": types.is_integer, "f": types.is_floating, "b": types.is_boolean}
    return tuple(shape), next((letter for letter, fits in letters.items() if fits(kind)), "U")


def read_columns(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Columns as arrays: (n,) of numbers or texts, or (n, ...) of lists of numbers of one length.

    Raises:
        DataError: as `fields_in`; or it lacks a column, or one cannot be an array or holds too many values.
    """
    import pyarrow as pa

    file = _opened(path)
    held = fields_in(path)
    if lacking := [name for name in names if name not in held]:
        raise DataError(f"{path}: no column {lacking[0]!r}; it has {listed(held)}")
    groups = [file.metadata.row_group(place) for place in range(file.metadata.num_row_groups)]
    chunks = (group.column(place) for group in groups for place in range(group.num_columns))
    count = sum(chunk.num_values for chunk in chunks if chunk.path_in_schema.split(".")[0] in names)
    if count > _MOST:
        what = f"the columns {listed(names)} hold {count} values"
        raise DataError(f"{path}: {what}, more than {_MOST}; write several files into a folder, or fewer rows")
    if not file.metadata.num_rows:
        raise DataError(f"{path}: has no rows")
    try:
        # A thread of pyarrow that lets go of a file while Python ends aborts the process.
        table = file.read(columns=[*dict.fromkeys(names)], use_threads=False)
        return {name: _array(path, name, table.column(name)) for name in names}
    except (*PARQUET_DAMAGE, pa.ArrowException) as error:
        raise DataError(f"{path}: is no readable Parquet file: {plain(error)}") from None


def _opened(path: Path) -> Any:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        remedy = "pip install '.[parquet]' in the clone, or save the columns by numpy.savez"
        raise DataError(f"{path}: Parquet files need pyarrow: {remedy}") from None
    try:
        return parquet.ParquetFile(path)
    except (*PARQUET_DAMAGE, pa.ArrowException) as error:
        raise DataError(f"{path}: is no readable Parquet file: {plain(error)}") from None


def _is_nested_list(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_list(kind: Any) -> bool:
    """Whether a column holds lists of numbers, or lists of these."""
    from pyarrow import types

    if not _is_nested_list(kind):
        return False
    while _is_nested_list(kind):
        kind = kind.value_type
    return bool(types.is_floating(kind) or types.is_integer(kind))


def _array(path: Path, name: str, column: pa.ChunkedArray) -> Array:
    """One column; see `read_columns`."""
    import pyarrow as pa
    from pyarrow import types

    if _is_list(column.type):
        return _rows(path, name, column)
    if types.is_nested(column.type):
        raise DataError(f"{path}: column {name!r} holds {column.type}; an array is of numbers, or of one text a row")
    if types.is_integer(column.type) or types.is_floating(column.type):
        values: Array = column.to_numpy()
        return values
    held = column if types.is_dictionary(column.type) else column.dictionary_encode()
    chunk = held.unify_dictionaries().combine_chunks()
    chunk = chunk.chunk(0) if isinstance(chunk, pa.ChunkedArray) else chunk
    codes = chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    try:
        texts: Array = np.array([*map(text_of, chunk.dictionary.to_pylist()), ""], np.str_)
    except UnicodeDecodeError:
        raise DataError(f"{path}: column {name!r} holds bytes that are no UTF-8 text; save texts") from None
    made: Array = texts[codes]
    return made


def _rows(path: Path, name: str, column: pa.ChunkedArray) -> Array:
    """Lists of numbers as rows of one length; a missing number is NaN."""
    import pyarrow as pa
    from pyarrow import compute, types

    values, shape = column, [len(column)]
    while _is_nested_list(values.type):
        lengths = compute.list_value_length(values).fill_null(-1).to_numpy()
        if (lengths < 0).any():
            row = int(np.argmax(lengths < 0)) // max(1, int(np.prod(shape[1:])))
            raise DataError(f"{path}: row {row} of column {name!r} has no list of numbers; remove the row")
        if (lengths != lengths[0]).any():
            what = f"column {name!r} holds lists of {lengths.min()} to {lengths.max()} numbers"
            raise DataError(f"{path}: {what}; make all of one length, signals by NaN at the end")
        shape.append(int(lengths[0]))
        values = compute.list_flatten(values)
    if types.is_float16(values.type):
        values = values.cast(pa.float32())
    made: Array = np.asarray(values.to_numpy()).reshape(shape)
    return made
