"""Rows as CSV text: the same bytes for the same rows, and harmless in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Value: TypeAlias = str | int | float | bool | None


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Value]]) -> str:
    r"""Writes rows under a header line.

    Floats have six significant digits, truth values are true and false, None is an empty field; lines end with `\n`.
    Any run of white space in a text is one space, and a text that a spreadsheet would take for a formula gets a leading
    apostrophe.
    """
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_MINIMAL, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(row[column]) for column in columns] for row in rows)
    return text.getvalue()


def _field(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int):
        return str(value)
    text = " ".join(value.split())  # Python's versions differ in how they quote a lone carriage return
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
