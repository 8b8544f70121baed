"""Writes frames as CSV: identical frames give identical bytes, and the text is safe to open."""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Callable
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
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")  # half the time of pandas
    writer.writerow(frame.columns)
    writer.writerows(zip(*(_fields(frame[name]) for name in frame), strict=True))
    return text.getvalue()


def _fields(column: pd.Series[Any]) -> list[str]:
    show: Callable[[Any], str] = functools.cache(_text)
    if pd.api.types.is_bool_dtype(column.dtype):
        show = {True: "true", False: "false"}.__getitem__
    elif pd.api.types.is_float_dtype(column.dtype):
        show = "{:.6g}".format
    elif pd.api.types.is_numeric_dtype(column.dtype):
        show = str
    known = column.notna().tolist()
    return [show(value) if is_known else "" for value, is_known in zip(column.tolist(), known, strict=True)]


def _text(value: Any) -> str:
    text = " ".join(printable(value, _MOST).split())
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame's rows as plain JSON values; missing values are None."""
    plain = frame.astype(object)
    return [
        {str(name): value for name, value in row.items()} for row in plain.where(plain.notna(), None).to_dict("records")
    ]
