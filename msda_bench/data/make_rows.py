"""A process that makes rows: reads descriptions of parts, a line of JSON each, and writes each part to a file."""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from msda_bench.api import Array, Row
from msda_bench.data.atomic import written
from msda_bench.errors import DataError

Make = Callable[..., tuple[Array, str | None]]


class _IncompleteError(Exception):
    """A part is not kept."""


def main() -> None:
    """Serves until stdin ends, as it does when the parent dies, however that comes about."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what a plugin prints is no answer
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), file=answers, flush=True)


def _answer(part: Mapping[str, Any]) -> dict[str, Any]:
    """{"notes": [[words, name]...], "faults": [[words, name]...], "error": line or None}."""
    module, _, function = part["make"].partition(":")
    make = getattr(importlib.import_module(module), function)
    rows = [Row(*row) for row in part["rows"]]
    try:
        return {"error": None, **make_part(Path(part["to"]), make, rows, tuple(part["shape"]), part)}
    except OSError as error:
        return {"notes": [], "faults": [], "error": f"{part['to']}: cannot be written: {error.strerror}"}


def make_part(
    path: Path, make: Make, rows: list[Row], shape: tuple[int, ...], part: Mapping[str, Any]
) -> dict[str, list[tuple[str, str]]]:
    """Writes the rows one after another, which holds one at a time in memory; no file if one cannot be made."""
    notes: list[tuple[str, str]] = []
    faults: list[tuple[str, str]] = []
    with contextlib.suppress(_IncompleteError), written(path) as stream:
        for row in rows:
            try:
                array, note = make(_content(row, part["largest"]), **part["options"])
            except DataError as error:
                faults.append((str(error), row.name))
                continue
            if array.shape != shape or array.dtype != np.uint8:
                raise TypeError(f"{part['make']} made {array.dtype} of shape {array.shape}, not uint8 of {shape}")
            stream.write(np.ascontiguousarray(array).data)
            notes.extend([] if note is None else [(note, row.name)])
        if faults:
            raise _IncompleteError
    return {"notes": notes, "faults": faults}


def _content(row: Row, largest: int) -> bytes:
    if row.size > largest:
        raise DataError(f"larger than {largest >> 20} MiB")
    try:
        with Path(row.path).open("rb") as stream:
            stream.seek(row.offset)
            return stream.read(row.size)
    except OSError as error:
        raise DataError(f"not readable ({error.strerror})") from None
