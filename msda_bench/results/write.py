"""Frames as CSV and JSON, and the files of a result folder: the same bytes for the same records."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from msda_bench.errors import printable
from msda_bench.store.files import named, write_over

_MOST = 1_000_000
"""Characters of a field; notes of many methods are long."""


def csv_text(frame: pd.DataFrame) -> str:
    r"""A frame as CSV under a header line, harmless in a spreadsheet.

    Floats have six significant digits, truth values are true and false, what is missing is an empty field; lines end
    with `\n`. Texts are printable, any white space in them is one space, and one that a spreadsheet would take for a
    formula gets a leading apostrophe.
    """
    columns = {name: _field(frame[name]) for name in frame}
    plain = pd.DataFrame(columns, columns=frame.columns, index=frame.index)
    return plain.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def _field(column: pd.Series[Any]) -> pd.Series[Any]:
    if pd.api.types.is_bool_dtype(column.dtype):
        return column.map({True: "true", False: "false"}, na_action="ignore")
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column
    texts = {value: _text(value) for value in column.dropna().unique()}
    return column.astype(object).map(texts, na_action="ignore")


def _text(value: Any) -> str:
    text = " ".join(printable(value, _MOST).split())
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame's rows as plain JSON values, what is missing as None."""
    plain = frame.astype(object)
    return plain.where(plain.notna(), None).to_dict("records")


def json_text(document: dict[str, Any]) -> str:
    """A document as JSON text: floats with six significant digits, as in the csv files.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    return json.dumps(_rounded(document), indent=2, allow_nan=False)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def replace_file(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all, in place of one that may be there.

    Raises:
        StoreError: it cannot be written.
    """
    with named(path, "cannot be written, what was there before is intact"):
        write_over(path, data)


def parquet_installed() -> bool:
    """Whether pandas can write parquet here."""
    return find_spec("pyarrow") is not None
