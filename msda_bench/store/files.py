"""The files of a result folder: what their names say, a record's file, and the arrays beside it.

A record's file is one line of canonical JSON, `{"record":{...},"schema":1,"sha256":"..."}`, where sha256 is that of the
same JSON without the sha256 field. That field sorts last, so that the check needs no second serialisation. Arrays
(predictions, features, weights) are npz files without pickle, named by the first 16 digits of their sha256, so that no
two runs write the same file. Names alone show which cells have a damaged record or results in conflict.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import io
import os
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from msda_bench.atomic import NO_LINK, named, read_file, write
from msda_bench.errors import StoreError
from msda_bench.store.record import LATER, SCHEMA, Record
from msda_bench.suite.cell import canonical_json, refuse_overflow

LIMIT = 1 << 26
"""The maximum size of a record's file in bytes."""
ARRAYS_LIMIT = 1 << 34
"""The maximum size of a file of arrays in bytes."""
Kind = Literal["result", "failure", "conflict", "bad"]
_RECORD = re.compile(
    r"(?P<key>[0-9a-f]{64})(?:\.json|\.(?P<kind>failure|conflict)-(?P<number>[1-9][0-9]{0,8})\.json|\.(?P<bad>bad)-[1-9][0-9]*)"
)
_ORDER = ("result", "failure", "conflict", "bad")
_ARRAYS = re.compile(r"(?P<key>[0-9a-f]{64})\.(?P<what>predictions|target_predictions|weights)-[0-9a-f]{16}\.npz")
_NO_RESULT = (
    (b',"provenance":{', b',"status":"'),
    (b',"timing":{', b',"validation":{'),
    (b',"sha256":"', b'"}\n'),
)
"""The fields of a record's file that are not part of the result, and the field after each."""
_FILE = re.compile(rb'\{"record":(\{.*\}),"schema":([0-9]{1,9}),"sha256":"([0-9a-f]{64})"\}\n', re.DOTALL)


class RecordFile(NamedTuple):
    """A file named as a record: the result of the cell `key`, or a numbered file of some kind for it."""

    folder: str
    name: str
    key: str
    kind: Kind
    number: int

    @classmethod
    def of(cls, folder: str, name: str) -> RecordFile | None:
        """The parts of a name; None if it is not a record's, or in the wrong folder."""
        parts = _RECORD.fullmatch(name)
        if parts is None or not folder.endswith(f"/{parts['key'][:2]}"):
            return None
        kind = cast("Kind", parts["kind"] or parts["bad"] or "result")
        return cls(folder, name, parts["key"], kind, int(parts["number"] or 0))

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.folder, self.name)

    def order(self) -> tuple[str, int, int]:
        """Sorts by key, the result first, then in the order of writing."""
        return self.key, _ORDER.index(self.kind), self.number


@dataclass(frozen=True)
class Faults:
    """Cells with faulty files.

    Attributes:
        damaged: keys of cells without a result that have a damaged record, in quarantine or not.
        conflicting: keys of cells that have another result besides the one that counts.
    """

    damaged: frozenset[str] = frozenset()
    conflicting: frozenset[str] = frozenset()

    def __deepcopy__(self, memo: dict[int, Any]) -> Faults:
        """Itself, which never changes: pandas copies a frame's `attrs` with nearly every operation."""
        return self


def files_in(folder: str, beginning: str = "") -> list[RecordFile]:
    """The files named as records in one folder, which must exist, whose names begin with `beginning`."""
    names = [name for name in os.listdir(folder) if name.startswith(beginning)]  # noqa: PTH208 - faster than paths
    return [file for name in names if (file := RecordFile.of(folder, name)) is not None]


def faults_among(files: Collection[RecordFile], keys: Iterable[str], ended: Collection[str]) -> Faults:
    """Damaged and conflicting records of the cells `keys`; `ended` are those with a readable result."""
    wanted = set(keys)
    damaged = {file.key for file in files if file.kind in {"result", "bad"} and file.key not in ended}
    conflicting = {file.key for file in files if file.kind == "conflict"}
    return Faults(frozenset(damaged & wanted), frozenset(conflicting & wanted))


class BadRecordError(StoreError):
    """Bytes that are not an intact record of the expected key, or a record that cannot be written."""


class NewerRecordError(StoreError):
    """An intact record in a layout of a newer msda-bench."""


def encode(record: Record) -> bytes:
    """The record's file.

    Raises:
        BadRecordError: `decode` would refuse it: it holds NaN, an infinity, text that is not Unicode, or too much.
    """
    try:
        body = canonical_json({"record": _fields(record), "schema": SCHEMA}).encode()
    except (TypeError, ValueError) as error:
        raise BadRecordError(f"record {record.key[:12]}: cannot be written as JSON: {error}") from error
    data = b'%s,"sha256":"%s"}\n' % (body[:-1], hashlib.sha256(body).hexdigest().encode())
    if len(data) > LIMIT:
        raise BadRecordError(f"record {record.key[:12]}: has {len(data)} bytes, more than the {LIMIT} of a record")
    try:
        decode(data, record.key)
    except BadRecordError as error:
        raise BadRecordError(f"record {record.key[:12]}: {error}") from error
    return data


def _fields(record: Record) -> dict[str, Any]:
    values = asdict(replace(record, arrays={}))
    for part in (values, values["outcome"] or {}):
        for name in LATER & part.keys():
            if not part[name] and part[name] != 0:
                del part[name]
    return values


def decode(data: bytes, key: str, *, curves: bool = True) -> Record:
    """The record of that key; without curves, which are most of the bytes, only their checksum is checked.

    Raises:
        BadRecordError: a byte is missing or wrong, or it is another cell's record.
        NewerRecordError: a newer msda-bench wrote it.
    """
    parts = _FILE.fullmatch(data)
    if parts is None:
        raise BadRecordError("is truncated or not a record")
    body, schema, digest = parts[1], int(parts[2]), parts[3].decode()
    if hashlib.sha256(data[: parts.end(2)] + b"}").hexdigest() != digest:
        raise BadRecordError("does not match its own sha256")
    if schema > SCHEMA:
        raise NewerRecordError(f"has schema {schema}, but this msda-bench reads {SCHEMA}; install a newer one")
    if schema < SCHEMA:
        raise BadRecordError(f"has schema {schema}, which no msda-bench wrote")
    record = _parse(body if curves else _without_curves(body))
    if record.key != key:
        raise BadRecordError(f"is the record of another cell, {record.key[:12]}")
    return record


def load(path: Path, key: str, *, curves: bool = True) -> Record | None:
    """The record of that key in a file, read by `decode`; None if there is no file.

    Raises:
        BadRecordError: it is damaged, too large, another cell's, or a link, which is not followed; without the path.
        NewerRecordError: a newer msda-bench wrote it.
        StoreError: it cannot be read.
    """
    with named(path, "cannot be read"):
        try:
            data = read_file(path, LIMIT)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in {errno.ELOOP, errno.EFBIG}:
                raise
            raise BadRecordError(NO_LINK if error.errno == errno.ELOOP else str(error.strerror)) from None
    try:
        return decode(data, key, curves=curves)
    except NewerRecordError as newer:
        raise NewerRecordError(f"{path}: {newer}") from None


def load_or_report(path: Path, key: str, bad: list[str]) -> Record | None:
    """As `load`; adds a line to `bad` for a record that is damaged or newer, and returns None."""
    try:
        return load(path, key)
    except BadRecordError as error:
        bad.append(f"{path}: {error}")
    except NewerRecordError as newer:
        bad.extend(newer.lines)
    return None


def same_result(first: Record, second: Record) -> bool:
    """Whether two records hold the same result: everything except timing, provenance and stored arrays.

    Counts that an older record does not have make no difference.
    """
    a, b = (replace(record, timing={}, provenance={}, saved={}, outcome=None) for record in (first, second))
    if first.outcome is None or second.outcome is None:
        return a == b and first.outcome is second.outcome
    return a == b and first.outcome.agrees(second.outcome)


def result_bytes(path: Path) -> bytes | None:
    """A record's file without timing, provenance and checksum; equal bytes mean the same result.

    None if it cannot be read, or if finding these fields needs parsing, since a nested field has such a name.
    """
    try:
        data = read_file(path, LIMIT)
    except OSError:
        return None
    for start, end in _NO_RESULT:
        if data.count(start) != 1 or data.count(end) != 1 or (at := data.find(start)) > (until := data.find(end)):
            return None
        data = data[:at] + data[until:]
    return data


def _without_curves(body: bytes) -> bytes:
    """Finds fields by name; quotes in text are escaped, so text cannot look like a field."""
    start = body.find(b',"curves":{"gaps":[')
    end = body.find(b'},"key":"', start)
    alone = min(start, end) >= 0 and body.count(b'"curves":') == 1
    return body[:start] + body[end + 1 :] if alone else body


def _parse(body: bytes) -> Record:
    try:
        refuse_overflow(body)
        return _adapter().validate_json(body, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise BadRecordError(f"does not match its schema: {where}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise BadRecordError(f"does not match its schema: {error}") from error


@functools.cache  # building it takes as long as reading hundreds of records
def _adapter() -> TypeAdapter[Record]:
    return TypeAdapter(Record)


def pack(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """The file of some arrays by name."""
    stream = io.BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def arrays_path(record_path: Path, name: str, sha256: str) -> Path:
    """The path of the file, next to its record."""
    return record_path.with_name(f"{record_path.stem}.{name}-{sha256[:16]}.npz")


def key_of_arrays(name: str) -> tuple[str, str] | None:
    """The key and the kind of arrays, such as predictions, from the name of a file; None for any other file."""
    parts = _ARRAYS.fullmatch(name)
    return (parts["key"], parts["what"]) if parts else None


def write_arrays(record: Record, record_path: Path) -> None:
    """Writes a record's files before the record itself, so that a record is never without its files.

    Raises:
        OSError: a file cannot be written.
    """
    for name, data in record.arrays.items():
        write(arrays_path(record_path, name, record.saved[name]), data)


def read_bytes(record: Record, record_path: Path, name: str) -> bytes | None:
    """The bytes of one of a record's files; None where it was left out, as of a copy without large files.

    Raises:
        StoreError: it cannot be read, or is not the one that the record names.
    """
    path = arrays_path(record_path, name, record.saved[name])
    with named(path, "cannot be read"):
        try:
            data = read_file(path, ARRAYS_LIMIT)
        except FileNotFoundError:
            return None
    if hashlib.sha256(data).hexdigest() != record.saved[name]:
        raise StoreError(
            f"{path}: is damaged: it does not match the sha256 in its record; remove it, and `msda-bench store merge` "
            "takes it from an intact copy of the folder"
        )
    return data


def load_arrays(record: Record, record_path: Path, name: str) -> dict[str, NDArray[np.generic]] | None:
    """The arrays of one of a record's files, by name; None and errors as of `read_bytes`."""
    data = read_bytes(record, record_path, name)
    if data is None:
        return None
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {field: archive[field] for field in archive.files}
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise StoreError(f"{arrays_path(record_path, name, record.saved[name])}: not an npz file: {error}") from error
