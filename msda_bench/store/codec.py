"""The line of a record in a log.

A line is canonical JSON, `{"record":{...},"schema":1,"sha256":"..."}`, where sha256 is that of the same JSON without
that field, which sorts last, so that the check needs no second serialisation.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import force_setattr

from msda_bench.errors import StoreError
from msda_bench.store.arrays import KINDS, name_of
from msda_bench.store.record import LATER, Count, Counts, Curves, Digest, Numbers, Pairs, Record, Saved, Status, Text
from msda_bench.suite.protocol import Splitting
from msda_bench.suite.run_spec import canonical_json, refuse_overflow

SCHEMA = 1
"""Version of a record's layout; raised when a field changes its meaning or name, not when fields are added."""
LIMIT = 1 << 26
"""The maximum size of a record's line in bytes."""
_UNMATCHED = (msgspec.MsgspecError, ValueError, RecursionError)
"""The errors raised for JSON that does not match its schema."""
_EMPTY = Raw(b"")
_NOTHING: dict[str, Any] = {}
"""The empty dict of all records, which nobody changes."""
_LINE = re.compile(rb'\{"record":(\{.*\}),"schema":([0-9]{1,9}),"sha256":"([0-9a-f]{64})"\}\n', re.DOTALL)


class _ComponentFields(Struct, frozen=True):
    name: Text = ""
    version: Count = 0
    params: dict[str, Any] = {}


class _RunFields(Struct, frozen=True):
    """The fields of a run that tables read; the others are only shown and may have any value."""

    dataset: _ComponentFields | None = None
    target: Text = ""
    seed: Count = 0
    labelled_target: Count = 0
    sources: list[Text] = []
    split_sources: dict[str, Any] | None = None


class Provenance(Struct, frozen=True):
    """The fields of a record's provenance that are read; others may hold anything."""

    device: Text | None = None
    device_name: Text | None = None
    stack_note: Text | None = None
    torch: Text | None = None
    python: Text | None = None
    numpy: Text | None = None
    platform: Text | None = None
    numba: Text | msgspec.UnsetType | None = msgspec.UNSET
    stack: Count | None = None
    distributions: dict[str, Text] = {}
    put_back: Any = None


class _OfCell(Struct, frozen=True, gc=False):
    dataset: Raw = Raw(b"{}")
    target: Text = ""


class _Confusion(Struct, frozen=True, gc=False):
    confusion: Pairs | None = None


class _Tested(Struct, frozen=True, gc=False):
    outcome: _Confusion | None = None


class RecordSummary(Struct, frozen=True, gc=False):
    """The fields of a record that tables need.

    `dataset` and `provenance` stay JSON, since most records share them. `cell` is empty once its parts have been read.
    `digest` is the sha256 of the line, which identifies equal lines, as 64 hexadecimal digits.
    """

    key: Digest
    cell: Raw
    status: Status
    outcome: Counts | None = None
    bound: Numbers = {}
    validation: Numbers = {}
    target_labels: bool = False
    message: Text | None = None
    timing: Numbers = {}
    provenance: Raw = Raw(b"{}")
    saved: Saved = {}
    dataset: Raw = msgspec.field(name="dataset of the cell", default=Raw(b"{}"))
    target: Text = msgspec.field(name="target of the cell", default="")
    digest: bytes = msgspec.field(name="sha256 of the line", default=b"")

    @property
    def arrays(self) -> dict[str, str]:
        """The name of each file of arrays that is kept with it, by kind."""
        return {kind: name_of(self.key, kind, self.saved[kind]) for kind in KINDS if kind in self.saved}


class BadRecordError(StoreError):
    """Bytes that are not an intact record, or a record that cannot be written."""


class NewerRecordError(StoreError):
    """An intact record in a layout of a newer msda-bench."""


def encode(record: Record) -> bytes:
    """The record's line; a BadRecordError if `decode` would refuse it, as for NaN, half a character, or too much."""
    try:
        body = canonical_json({"record": _fields(record), "schema": SCHEMA}).encode()
    except (TypeError, ValueError) as error:
        raise BadRecordError(f"record {record.key[:12]}: cannot be written as JSON: {error}") from error
    data = b'%s,"sha256":"%s"}\n' % (body[:-1], hashlib.sha256(body).hexdigest().encode())
    if len(data) > LIMIT:
        raise BadRecordError(f"record {record.key[:12]}: has {len(data)} bytes, more than the {LIMIT} of a record")
    try:
        decode(data)
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


def decode(data: bytes) -> Record:
    """The record of a line; a BadRecordError if a byte is wrong, a NewerRecordError if a newer msda-bench wrote it."""
    body = bytes(_body(data))
    with _matching():
        refuse_overflow(body)
        record = msgspec.json.decode(body, type=Record)
        fields = msgspec.convert(record.cell, _RunFields)
        if fields.split_sources is not None:
            Splitting.model_validate(fields.split_sources)
        msgspec.convert(record.provenance, Provenance)
        if record.curves is not None:
            _refuse_ragged(record.curves)
    return record


def decode_summary(data: bytes) -> RecordSummary:
    """The summary of a line; raises as `decode`, and a BadRecordError if its cell does not have its key."""
    body = _body(data)
    try:  # not by `_matching`, which takes as long as reading a short record
        summary = msgspec.json.decode(body, type=RecordSummary)
        cell = msgspec.json.decode(summary.cell, type=_OfCell)
        dataset = _shared(bytes(cell.dataset), _ComponentFields)
        provenance = _shared(bytes(summary.provenance), Provenance)
        _refuse_other_cell(summary)
    except _UNMATCHED as error:
        raise _unmatched(error) from error
    # Raw is a view, which would keep the whole line, with its curves.
    force_setattr(summary, "cell", _EMPTY)
    force_setattr(summary, "dataset", dataset)
    force_setattr(summary, "target", cell.target)
    force_setattr(summary, "provenance", provenance)
    force_setattr(summary, "digest", data[-67:-3])
    for name in ("bound", "saved"):
        if not getattr(summary, name):  # most are empty, and a dict of its own takes as much as the rest
            force_setattr(summary, name, _NOTHING)
    return summary


def _refuse_other_cell(read: RecordSummary) -> None:
    """Refuses a record whose key is not that of its cell, since tables are made from the key and read the cell."""
    if hashlib.sha256(read.cell).hexdigest() == read.key:  # canonical JSON, as we write it
        return
    rewritten = canonical_json(msgspec.json.decode(read.cell)).encode()
    if hashlib.sha256(rewritten).hexdigest() != read.key:
        raise BadRecordError("has a `cell` that does not have its key")


def decode_classes(data: bytes) -> dict[int, int]:
    """The number of test examples of each class, as the confusion counts of a line tell it; raises as `decode`.

    Empty without such counts, which regression and older records do not have.
    """
    body = _body(data)
    with _matching():
        outcome = msgspec.json.decode(body, type=_Tested).outcome
    sizes: dict[int, int] = {}
    for true, _predicted, count in (outcome and outcome.confusion) or ():
        sizes[true] = sizes.get(true, 0) + count
    return sizes


@functools.lru_cache(maxsize=1000)
def _shared(data: bytes, of: type[Struct]) -> Raw:
    """JSON of this type, which is the same in most records."""
    msgspec.json.decode(data, type=of)
    return Raw(data)


@contextlib.contextmanager
def _matching() -> Iterator[None]:
    try:
        yield
    except _UNMATCHED as error:
        raise _unmatched(error) from error


def _unmatched(error: Exception) -> BadRecordError:
    return BadRecordError(f"does not match its schema: {error}")


def _body(data: bytes) -> memoryview:
    """The JSON of the record in a line whose checksum is right."""
    parts = _LINE.fullmatch(data)
    if parts is None:
        raise BadRecordError("is truncated or not a record")
    view = memoryview(data)
    schema = int(parts[2])
    digest = hashlib.sha256(view[: parts.end(2)])
    digest.update(b"}")
    if digest.hexdigest().encode() != parts[3]:
        raise BadRecordError("does not match its own sha256")
    if schema > SCHEMA:
        raise NewerRecordError(f"has schema {schema}, but this msda-bench reads {SCHEMA}; install a newer one")
    if schema < SCHEMA:
        raise BadRecordError(f"has schema {schema}, which no msda-bench wrote")
    return view[slice(*parts.span(1))]


def _refuse_ragged(curves: Curves) -> None:
    epochs, width = len(curves.risks), len(curves.groups)
    for name in ("risks", "gaps", "weights"):
        rows = getattr(curves, name)
        if len(rows) != epochs or not {width}.issuperset(map(len, rows)):
            raise ValueError(f"{name} needs a number for each of {epochs} epochs and {width} groups")
