"""A record as bytes that say by themselves whether they are whole.

A file is one line of canonical JSON, `{"record":{...},"schema":1,"sha256":"..."}`, where sha256 is that of the same
JSON without the sha256 field. That field sorts last, so that the check needs no second serialisation.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
from dataclasses import asdict, replace
from typing import NoReturn

from pydantic import TypeAdapter, ValidationError

from msda_bench.errors import StoreError
from msda_bench.store.record import SCHEMA, Record
from msda_bench.store.schemas import upgraded
from msda_bench.suite.cell import canonical_json

_FILE = re.compile(rb'\{"record":(\{.*\}),"schema":([0-9]{1,9}),"sha256":"([0-9a-f]{64})"\}\n', re.DOTALL)

_HUGE = tuple(re.compile(letter + rb"\+?[0-9]{3,}[],}\s]") for letter in (b"e", b"E"))
"""The end of a number that may be infinite; hashes, full of such digits, end in quotes.

Two patterns because the search for one letter is ten times as fast as that for either.
"""


class BadRecordError(StoreError):
    """Bytes that are no whole record of the expected key, or a record that no bytes can tell."""


class NewerRecordError(StoreError):
    """A whole record of a layout that only a newer msda-bench knows."""


def encode(record: Record) -> bytes:
    """The record's file.

    Raises:
        BadRecordError: it holds NaN, an infinity, or text that is not Unicode.
    """
    try:
        body = canonical_json({"record": asdict(record), "schema": SCHEMA}).encode()
    except (TypeError, ValueError) as error:
        raise BadRecordError(f"record {record.key[:12]}: cannot be written as JSON: {error}") from error
    return b'%s,"sha256":"%s"}\n' % (body[:-1], hashlib.sha256(body).hexdigest().encode())


def decode(data: bytes, key: str) -> Record:
    """The record of that key.

    Raises:
        BadRecordError: a byte is missing or wrong, or it is another cell's record.
        NewerRecordError: a newer msda-bench wrote it.
    """
    found = _FILE.fullmatch(data)
    if found is None:
        raise BadRecordError("is truncated or no record")
    body, schema, digest = found[1], int(found[2]), found[3].decode()
    if hashlib.sha256(data[: found.end(2)] + b"}").hexdigest() != digest:
        raise BadRecordError("does not match its own sha256")
    if schema > SCHEMA:
        raise NewerRecordError(f"has schema {schema}, but this msda-bench reads {SCHEMA}; install a newer one")
    record = _parse(body if schema == SCHEMA else _upgraded(body, schema))
    if record.key != key:
        raise BadRecordError(f"is the record of another cell, {record.key[:12]}")
    return record


def same_result(one: Record, other: Record) -> bool:
    """Whether two records tell the same result: all but their timing and provenance."""
    return replace(one, timing={}, provenance={}) == replace(other, timing={}, provenance={})


def _upgraded(body: bytes, schema: int) -> bytes:
    try:
        return canonical_json(upgraded(json.loads(body), schema)).encode()
    except (ValueError, RecursionError) as error:
        raise BadRecordError(str(error)) from error


def _parse(body: bytes) -> Record:
    try:
        # Pydantic would let them pass; text may hold the same.
        if b"NaN" in body or b"Infinity" in body or any(huge.search(body) for huge in _HUGE):
            json.loads(body, parse_constant=_refuse, parse_float=_finite)
        return _adapter().validate_json(body, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise BadRecordError(f"is not as its schema says: {where}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise BadRecordError(f"is not as its schema says: {error}") from error


@functools.cache  # building it takes as long as reading hundreds of records
def _adapter() -> TypeAdapter[Record]:
    return TypeAdapter(Record)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)
