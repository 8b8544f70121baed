"""Writes frames as CSV and JSON: identical frames give identical bytes, and the text is safe to open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from msda_bench.errors import printable

if TYPE_CHECKING:
    from msda_bench.results.report import Column, Report

SCHEMA = 4
"""Version of the layout of all JSON documents."""
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


def json_text(document: dict[str, Any]) -> str:
    """Writes a document as JSON; floats have six significant digits, as in the CSV files.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    return json.dumps(_rounded(document), indent=2, allow_nan=False)


def document(report: Report) -> dict[str, Any]:
    """A report as a JSON document; docs/json.md explains the keys."""
    beside: dict[str, list[dict[str, Any]]] = {"verdict": [], "note": [], "problem": []}
    tables = []
    for section in report.sections:
        first = section.tables[0].name if section.tables else None
        for table in section.tables:
            beside["verdict"] += [{"table": table.name, "text": text} for text in table.verdict]
            for line in table.remarks:
                beside[line.kind].append({"table": table.name, "text": line.text})
            tables.append({
                "name": table.name,
                "title": table.title,
                "columns": [_column(column) for column in table.columns],
                "rows": rows_of(table.rows),
            })  # fmt: skip
        for line in section.lines:
            if line.kind in beside:
                beside[line.kind].append({"table": first, "text": line.text})
    return {
        "schema": SCHEMA,
        "command": report.command,
        "complete": report.complete,
        **report.facts,
        "verdict": beside["verdict"],
        "tables": tables,
        "notes": beside["note"],
        "problems": beside["problem"],
        "faults": list(report.faults),
    }


def _column(column: Column) -> dict[str, Any]:
    where = {} if column.where is None else {"where": {column.where[0]: column.where[1]}}
    unit = {"unit": column.unit.label} if column.unit.label else {}
    return {"name": column.name, "format": column.format, "of": list(column.of)} | unit | where


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return value.item() if isinstance(value, np.generic) else value
