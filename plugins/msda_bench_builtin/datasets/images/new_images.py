"""Reads new images for a trained model in the same way as its training images."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from msda_bench.api import DataError, DomainData, Files, NewRows, NewRowsReader, Row, Rows
from msda_bench_builtin.datasets.images.listing import files_of, is_archive


@dataclass(frozen=True, kw_only=True)
class ImagesReader(NewRowsReader):
    """Reads the images of a folder, with all that lies below it, of a tar archive, or a single image.

    Attributes:
        classes: their names, in order.
        side: pixels of the square that is kept.
        options: of `decode`.
    """

    classes: tuple[str, ...]
    side: int
    options: Mapping[str, Any]

    def read(self, path: Path, files: Files) -> NewRows:
        """The images by their paths; see `NewRowsReader`."""
        rows, lines = _found(path)
        make = Rows("msda_bench_builtin.datasets.images.decode:decode", rows, (3, self.side, self.side), self.options)
        sources = [[row.name, row.path, row.offset, row.size, row.stamp] for row in rows]
        digest = hashlib.sha256(json.dumps(sources).encode(errors="surrogateescape")).hexdigest()
        name = json.dumps(["images", "new", digest, dict(self.options)])
        try:
            x = files.rows(name, make)
        except DataError as error:
            raise DataError(*(f"{path}: {line}" for line in error.lines)) from None
        data = DomainData(x, np.full(len(rows), -1, np.int64), identity=name)
        return NewRows(data, {"file": [row.name.removeprefix("./") for row in rows]}, lines=lines)


def _found(path: Path) -> tuple[tuple[Row, ...], tuple[str, ...]]:
    """The images, and a line on other files."""
    if path.is_file() and not is_archive(path):
        state = path.stat()
        row = Row(path.name, str(path), 0, state.st_size, state.st_mtime_ns)
        return (row,), ()
    found = files_of(path)
    others = ", ".join(f"{count} {ending}" for ending, count in sorted(found.others.items()))
    if not found.images:
        beside = f", but {others}" if others else ""
        raise DataError(f"{path}: has no images{beside}")
    if not others:
        return found.images, ()
    return found.images, (f"{path.name}: not read, since they are no images: {others}",)
