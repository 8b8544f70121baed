"""Reads new images for a trained model in the same way as its training images."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from msda_bench.api import Array, DataError, DomainData, Files, NewRows, NewRowsReader, Row, Rows
from msda_bench_builtin.datasets.images.listing import files_of, is_archive


@dataclass(frozen=True, kw_only=True)
class ImagesReader(NewRowsReader):
    """Reads the images of a folder, with all that lies below it, of a tar archive, or a single image.

    Attributes:
        classes: their names, in order.
        options: of `decode`.
    """

    classes: tuple[str, ...]
    options: Mapping[str, Any]

    def read(self, path: Path, files: Files) -> NewRows:
        """The images by their paths; see `NewRowsReader`."""
        rows, lines = _found(path)
        sources = [[row.name, row.path, row.offset, row.size, row.stamp] for row in rows]
        digest = hashlib.sha256(json.dumps(sources).encode(errors="surrogateescape")).hexdigest()
        name = json.dumps(["images", "new", digest, dict(self.options)])
        x = decoded_rows(files, name, rows, self.options, path)
        data = DomainData(x, np.full(len(rows), -1, np.int64), identity=name)
        return NewRows(data, {"file": [row.name.removeprefix("./") for row in rows]}, lines=lines)


def decoded_rows(files: Files, name: str, rows: tuple[Row, ...], options: Mapping[str, Any], where: object) -> Array:
    """Images (n, 3, side, side) uint8, decoded once and then kept.

    Args:
        files: the local files.
        name: of the images in the cache.
        rows: the images.
        options: of `decode`.
        where: they are, for messages.

    Raises:
        DataError: a line for each kind of fault.
    """
    side = options["side"]
    make = Rows("msda_bench_builtin.datasets.images.decode:decode", rows, (3, side, side), options)
    try:
        return files.rows(name, make)
    except DataError as error:
        raise DataError(*(f"{where}: {line}" for line in error.lines)) from None


def _found(path: Path) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """The images, and a line on other files."""
    if path.is_file() and not is_archive(path):
        state = path.stat()
        row = Row(path.name, str(path), 0, state.st_size, state.st_mtime_ns)
        return (row,), ()
    found = files_of(path)
    others = ", ".join(found.endings())
    if not found.images:
        beside = f", but {others}" if others else ""
        raise DataError(f"{path}: has no images{beside}")
    if not others:
        return found.images, ()
    return found.images, (f"{path.name}: not read, since they are no images: {others}",)
