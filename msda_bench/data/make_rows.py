"""A process that makes rows: reads a part's description from each line of JSON and writes the part to a file."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from msda_bench.api import Array, Row
from msda_bench.blame import describe_with_place, package
from msda_bench.cache import REMEDY
from msda_bench.data.atomic import written
from msda_bench.errors import BenchError, DataError, PluginError

Make = Callable[..., Any]


class _IncompleteError(Exception):
    """A part cannot be kept."""


def main() -> None:
    """Serves until stdin ends, as it does when the parent dies, for any reason."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answers:
        os.dup2(
            sys.stderr.fileno(), sys.stdout.fileno()
        )  # keeps a plugin's or its libraries' output out of the answers
        for line in sys.stdin:
            print(json.dumps(_answer(json.loads(line))), file=answers, flush=True)


def _answer(part: Mapping[str, Any]) -> dict[str, Any]:
    """{"notes": [[words, name]...], "faults": [[words, name]...], "error": line or None}."""
    module, _, function = part["make"].partition(":")
    try:
        make = getattr(importlib.import_module(module), function)
        return {"error": None, **make_part(Path(part["to"]), make, [Row(*row) for row in part["rows"]], part)}
    except BenchError as error:
        line = str(error)
    except OSError as error:
        line = f"{part['to']}: cannot be written: {error.strerror}; {REMEDY}"
    return {"notes": [], "faults": [], "error": line}


def make_part(path: Path, make: Make, rows: list[Row], part: Mapping[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """Writes each row when it is made, so that few are in memory, then their sha256; nothing if one cannot be made."""
    notes: list[tuple[str, str]] = []
    faults: list[tuple[str, str]] = []
    size, digest = part["together"] or 1, hashlib.sha256()
    with contextlib.suppress(_IncompleteError), written(path) as stream:
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            try:
                array, note = _made(make, some, part)
            except DataError as error:
                if part["together"]:
                    raise
                faults.append((str(error), some[0].name))
                continue
            content = np.ascontiguousarray(array).data
            digest.update(content)
            stream.write(content)
            notes.extend([] if note is None else [(note, some[0].name)])
        if faults:
            raise _IncompleteError
        stream.write(digest.digest())
    return {"notes": notes, "faults": faults}


def _made(make: Make, rows: list[Row], part: Mapping[str, Any]) -> tuple[Array, str | None]:
    contents, shape, note = [_content(row, part) for row in rows], part["shape"], None
    try:
        if part["together"]:
            array, shape = make(contents, **part["options"]), [len(rows), *shape]
        else:
            array, note = make(contents[0], **part["options"])
    except BenchError:
        raise
    except MemoryError:
        raise DataError("needs more memory than there is") from None
    except Exception as error:
        why = describe_with_place(error, {package(part["make"])})
        raise PluginError(f"{part['make']} failed while {part['doing']} {rows[0].name}: {why}") from error
    if list(array.shape) != shape or array.dtype != part["dtype"]:
        raise TypeError(f"{part['make']} made {array.dtype} of shape {array.shape}, not {part['dtype']} of {shape}")
    return array, note


def _content(row: Row, part: Mapping[str, Any]) -> bytes:
    place = f"{row.path}: " if part["together"] else ""  # the fault of a single row is reported with its name
    if row.size > part["largest"]:
        raise DataError(f"{place}larger than {part['largest'] >> 20} MiB")
    try:
        with Path(row.path).open("rb") as stream:
            stream.seek(row.offset)
            content = stream.read(row.size)
    except OSError as error:
        raise DataError(f"{place}not readable ({error.strerror})") from None
    if len(content) < row.size:
        raise DataError(f"{place}truncated since it was listed")
    return content
