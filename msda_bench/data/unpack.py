"""Unpacks images in Parquet files, as the Hub of Hugging Face keeps them, into folders."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msda_bench.errors import DataError


def images_in(path: Path) -> tuple[str, list[Path]] | None:
    """The column of images of a Parquet file, or of a folder's, and the files; None if there is none.

    Such a column holds an image's file as the field `bytes`.
    """
    files = [path]
    if path.suffix != ".parquet":
        files = sorted([*path.glob("*.parquet"), *path.glob("data/*.parquet")])
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pq.read_schema(files[0])
    except (ImportError, IndexError, OSError, ValueError):  # no Parquet files, or for a reader of tables to explain
        return None
    for field in schema:
        if pa.types.is_struct(field.type) and field.type.get_field_index("bytes") >= 0:
            return field.name, files
    return None


def unpack(path: Path, folder: Path, domain: str, label: str) -> int:
    """Writes DOMAIN/CLASS/FILE, with a level for the part if files of several are there, and nothing if it fails.

    Args:
        path: a Parquet file, or a folder of some.
        folder: where to write; it must not exist.
        domain: the column that names domains.
        label: the column of classes, or of their numbers where the file knows names.

    Returns:
        How many rows were left out, since they have no domain, no class or no image.

    Raises:
        DataError: there are no images, or no such columns, or the folder exists or cannot be written.
    """
    held = images_in(path)
    if held is None:
        raise DataError(f"{path}: no Parquet file with a column of images (of type struct, with `bytes`) to unpack")
    image, files = held
    if folder.exists():
        raise DataError(f"{folder}: already exists; name another folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            into = Path(made, folder.name)
            into.mkdir()
            several = len({_part(file) for file in files}) > 1
            left_out = 0
            for file in files:
                part = _part(file) if several else ""
                left_out += _unpack(file, (image, domain, label), into, part)
            into.rename(folder)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be unpacked to {folder}: {error}; replace the file or free space") from None
    return left_out


def _part(file: Path) -> str:
    return re.sub(r"-\d+-of-\d+$", "", file.stem)


def _unpack(file: Path, columns: tuple[str, str, str], folder: Path, part: str) -> int:
    """Writes the images of a file; returns how many rows were left out."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as held:
        schema = held.schema_arrow
        if absent := {*columns} - {*schema.names}:
            raise DataError(f"{file}: no column {', '.join(sorted(absent))}; it has {', '.join(schema.names)}")
        written = (schema.metadata or {}).get(b"huggingface", b"{}")
        known = json.loads(written).get("info", {}).get("features", {})
        _, of_domain, of_label = columns
        row = left_out = 0
        for batch in held.iter_batches(64, columns=[*columns]):
            values = [batch[name].to_pylist() for name in columns]
            for image, raw_domain, raw_label in zip(*values, strict=True):
                row += 1
                domain = _name(raw_domain, known.get(of_domain, {}))
                label = _name(raw_label, known.get(of_label, {}))
                if not (domain and label and image and image.get("bytes")):
                    left_out += 1
                    continue
                into = folder / domain / part / label
                into.mkdir(parents=True, exist_ok=True)
                ending = Path(image.get("path") or "").suffix
                (into / f"{file.stem}-{row:07}{ending}").write_bytes(image["bytes"])
        return left_out


def _name(value: Any, feature: Mapping[str, Any]) -> str:
    """A folder's name for a domain or class; empty if it is missing, as -1 is where the file knows names."""
    names = feature.get("names")
    if names and isinstance(value, int):
        value = names[value] if 0 <= value < len(names) else None
    if value is None:
        return ""
    return re.sub(r"^\.|[/\0]", lambda found: f"%{ord(found[0]):02X}", str(value))
