"""Parquet files as columns of texts, or as arrays: lists of numbers, as hubs store embeddings, and plain values."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from msda_bench.api import Array, DataError
from msda_bench_builtin.datasets.tables.folder import PARQUET, files_of
from msda_bench_builtin.datasets.tables.texts import names_text, text_of
from msda_bench_builtin.datasets.unpacked import reading

if TYPE_CHECKING:
    import pyarrow as pa

_MOST = 1 << 29
"""The maximum number of values in arrays, 4 GB if all have 8 bytes; and of bytes in a table."""
_CELLS = 1 << 27
"""The maximum number of values in a table, where equal ones take next to no bytes."""
_UNREADABLE = "is no readable Parquet file"


def has_lists(path: Path) -> bool:
    """Whether a Parquet file, or the first one of a folder, has a column of lists of numbers; False if unreadable."""
    try:
        first = files_of(path, PARQUET)[0]
        return first.suffix.lower() in PARQUET and any(map(_is_list, fields_in(first).values()))
    except DataError:
        return False


def table_columns(path: Path, content: bytes) -> list[tuple[str, list[str], Array]]:
    """The name of each column, its different texts, and each row's place among them, -1 where there is none.

    Raises:
        DataError: the file is damaged, too large, or has a column without one value in each row.
    """
    from pyarrow import types

    schema = _opened(path, io.BytesIO(content)).schema_arrow
    nested = [field for field in schema if types.is_nested(field.type)]
    if nested:
        what = f"column {nested[0].name!r} holds {nested[0].type}, not one value in each row; leave it out of the file"
        raise DataError(f"{path}: {what}, or read it as `arrays`, whose inputs may be lists of numbers")
    # Texts stay as they are encoded: one that repeats may take no bytes, but a copy for each row all memory.
    are_texts = (types.is_string, types.is_large_string)
    encoded = [field.name for field in schema if any(is_text(field.type) for is_text in are_texts)]
    file = _opened(path, io.BytesIO(content), encoded)
    held = file.metadata
    size = sum(held.row_group(group).total_byte_size for group in range(held.num_row_groups))
    if size > _MOST or held.num_rows * held.num_columns > _CELLS:
        what = f"unpacks to {size} bytes, {held.num_rows} rows of {held.num_columns} columns"
        raise DataError(f"{path}: {what}, more than {_MOST} bytes or {_CELLS} values; save them as `arrays`")
    table = _read(path, file, None)
    return [(name, *_texts(path, name, table.column(place))) for place, name in enumerate(schema.names)]


def fields_in(path: Path) -> dict[str, Any]:
    """The types of the columns of a Parquet file by name.

    Raises:
        DataError: it is none, it is damaged, or pyarrow is not installed.
    """
    return {field.name: field.type for field in _opened(path, path).schema_arrow}


def shape_in(path: Path, name: str) -> tuple[tuple[int, ...], str] | None:
    """The shape of a column and the kind of its dtype as an array, "O" if it cannot be one; None without the column.

    The length of lists that are not of a fixed size is not looked at, and is 0.
    """
    from pyarrow import types

    kind = fields_in(path).get(name)
    if kind is None:
        return None
    shape = [_opened(path, path).metadata.num_rows]
    while _is_nested_list(kind):
        shape.append(kind.list_size if types.is_fixed_size_list(kind) else 0)
        kind = kind.value_type
    if types.is_nested(kind):
        return tuple(shape), "O"
    letters = {"i": types.is_integer, "f": types.is_floating, "b": types.is_boolean}
    letter = next((letter for letter, fits in letters.items() if fits(kind)), "U")
    return tuple(shape), letter


def read_columns(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Columns as arrays: (n,) of numbers or texts, or (n, ...) of lists of numbers of one length.

    Raises:
        DataError: as `fields_in`; or it lacks a column, or one cannot be an array or holds too many values.
    """
    file = _opened(path, path)
    held = fields_in(path)
    for name in names:
        if name not in held:
            raise DataError(f"{path}: no column {name!r}; it has {names_text(held)}")
    count = 0
    for place in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(place)
        for column in range(group.num_columns):
            chunk = group.column(column)
            if chunk.path_in_schema.split(".")[0] in names:
                count += chunk.num_values
    if count > _MOST:
        what = f"the columns {names_text(names)} hold {count} values"
        raise DataError(f"{path}: {what}, more than {_MOST}; write several files into a folder, or fewer rows")
    table = _read(path, file, [*dict.fromkeys(names)])
    with reading(path, _UNREADABLE):
        return {name: _array(path, name, table.column(name)) for name in names}


def _opened(path: Path, source: Path | io.BytesIO, encoded: Sequence[str] = ()) -> Any:
    """The file; `encoded` are columns of texts that stay encoded."""
    try:
        from pyarrow import parquet
    except ImportError:
        remedy = "pip install '.[parquet]' in the clone, or save the table as CSV, or arrays by numpy.savez"
        raise DataError(f"{path}: Parquet files need pyarrow: {remedy}") from None
    with reading(path, _UNREADABLE):
        return parquet.ParquetFile(source, read_dictionary=[*encoded])


def _read(path: Path, file: Any, names: Sequence[str] | None) -> pa.Table:
    if not file.metadata.num_rows:
        raise DataError(f"{path}: has no rows")
    with reading(path, _UNREADABLE):
        # A thread of pyarrow that lets go of a file while Python ends aborts the process.
        return file.read(columns=names, use_threads=False)


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


def _texts(path: Path, name: str, values: pa.ChunkedArray) -> tuple[list[str], Array]:
    """The different texts of a column, and the place of each row's text, -1 where it is missing."""
    import pyarrow as pa
    from pyarrow import types

    with reading(path, _UNREADABLE):
        if types.is_float16(values.type):  # which cannot be encoded
            values = values.cast(pa.float32())
        if not types.is_dictionary(values.type):
            values = values.dictionary_encode()
        held = values.unify_dictionaries().combine_chunks()
        held = held.chunk(0) if isinstance(held, pa.ChunkedArray) else held
        codes = held.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        try:
            return [text_of(value) for value in held.dictionary.to_pylist()], codes
        except UnicodeDecodeError:
            what = f"column {name!r} holds bytes that are no UTF-8 text; save texts, or leave it out of the file"
            raise DataError(f"{path}: {what}") from None


def _array(path: Path, name: str, column: pa.ChunkedArray) -> Array:
    """One column; see `read_columns`."""
    from pyarrow import types

    if _is_list(column.type):
        return _rows(path, name, column)
    if types.is_nested(column.type):
        raise DataError(f"{path}: column {name!r} holds {column.type}; an array is of numbers, or of one text a row")
    if types.is_integer(column.type) or types.is_floating(column.type):
        values: Array = column.to_numpy()
        return values
    texts, codes = _texts(path, name, column)
    made: Array = np.array([*texts, ""], np.str_)[codes]
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
