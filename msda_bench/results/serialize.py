"""Writes frames as CSV: identical frames give identical bytes, and the text is safe to open."""

from __future__ import annotations

from typing import Any

import pandas as pd

from msda_bench.errors import printable

_MOST = 1_000_000
"""The maximum length of a text field; notes on many methods are long."""


def csv_text(frame: pd.DataFrame) -> str:
    r"""Writes a frame as CSV with a header line, safe to open in a spreadsheet.

    Floats have six significant digits, Booleans are true and false, missing values are empty fields, and lines end with
    `\n`. Texts are printable, runs of white space become one space, and a text that a spreadsheet would read as a
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
    return column.astype(object).map(texts.__getitem__, na_action="ignore")


def _text(value: Any) -> str:
    text = " ".join(printable(value, _MOST).split())
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame's rows as plain JSON values; missing values are None."""
    plain = frame.astype(object)
    return [
        {str(name): value for name, value in row.items()} for row in plain.where(plain.notna(), None).to_dict("records")
    ]
