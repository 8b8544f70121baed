"""A record's file, which includes a checksum of itself.

A file is one line of canonical JSON, `{"record":{...},"schema":1,"sha256":"..."}`, where sha256 is that of the same
JSON without the sha256 field. That field sorts last, so that the check needs no second serialisation.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from msda_bench.atomic import NO_LINK, named, read_file
from msda_bench.errors import StoreError
from msda_bench.store.record import LATER, SCHEMA, Record
from msda_bench.suite.cell import canonical_json, refuse_overflow

LIMIT = 1 << 26
"""The maximum size of a record's file in bytes."""
_NO_RESULT = (
    (b',"provenance":{', b',"status":"'),
    (b',"timing":{', b',"validation":{'),
    (b',"sha256":"', b'"}\n'),
)
"""The fields of a record's file that are not part of the result, and the field after each."""
_FILE = re.compile(rb'\{"record":(\{.*\}),"schema":([0-9]{1,9}),"sha256":"([0-9a-f]{64})"\}\n', re.DOTALL)


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
    found = asdict(replace(record, arrays={}))
    for part in (found, found["outcome"] or {}):
        for name in LATER & part.keys():
            if not part[name] and part[name] != 0:
                del part[name]
    return found


def decode(data: bytes, key: str, *, curves: bool = True) -> Record:
    """The record of that key; without curves, which are most of the bytes, only their checksum is checked.

    Raises:
        BadRecordError: a byte is missing or wrong, or it is another cell's record.
        NewerRecordError: a newer msda-bench wrote it.
    """
    found = _FILE.fullmatch(data)
    if found is None:
        raise BadRecordError("is truncated or not a record")
    body, schema, digest = found[1], int(found[2]), found[3].decode()
    if hashlib.sha256(data[: found.end(2)] + b"}").hexdigest() != digest:
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


def same_result(one: Record, other: Record) -> bool:
    """Whether two records hold the same result: everything except timing, provenance and stored arrays.

    Counts that an older record does not have make no difference.
    """
    a, b = (replace(record, timing={}, provenance={}, saved={}, outcome=None) for record in (one, other))
    if one.outcome is None or other.outcome is None:
        return a == b and one.outcome is other.outcome
    return a == b and one.outcome.agrees(other.outcome)


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
