"""A record: the outcome of one cell, immutable, and its line in a log.

A line is canonical JSON, `{"record":{...},"schema":1,"sha256":"..."}`, where sha256 is that of the same JSON without
that field, which sorts last, so that the check needs no second serialisation. The types restrict the contents, since a
result folder may come from anyone and a sha256 does not prove that it makes sense.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.structs import force_setattr

from msda_bench.component.task import TASK_KINDS
from msda_bench.errors import StoreError
from msda_bench.store.arrays import KINDS, name_of
from msda_bench.suite.protocol import Splitting
from msda_bench.suite.run_spec import canonical_json, refuse_overflow

SCHEMA = 1
"""Version of a record's layout; raised when a field changes its meaning or name, not when fields are added."""
LIMIT = 1 << 26
"""The maximum size of a record's line in bytes."""
Count: TypeAlias = Annotated[int, Meta(ge=-(2**53), le=2**53)]
"""Whole numbers up to this one are exact as floats."""
Number: TypeAlias = Count | float
"""A number: whole numbers are read as such and written unchanged; JSON has no NaN and no infinity."""
Numbers: TypeAlias = Annotated[dict[str, Number], Meta(max_length=1000)]
Class: TypeAlias = Annotated[int, Meta(ge=0, lt=1_000_000)]
Pairs: TypeAlias = Annotated[
    tuple[tuple[Class, Class, Annotated[int, Meta(ge=1, le=2**53)]], ...], Meta(max_length=1_000_000)
]
"""For each true and predicted class that occur together, the number of examples."""
Text: TypeAlias = Annotated[str, Meta(max_length=10_000)]
Digest: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Saved: TypeAlias = dict[Annotated[str, Meta(pattern="^(predictions|target_predictions|weights)$")], Digest]
Status = Literal["ok", "diverged", "failed", "timeout", "oom", "skipped"]
RESULTS = frozenset({"ok", "diverged"})
"""Statuses that running the cell again would give again; the rest are failures."""
_ROUNDING, _TINY = 1e-6, 1e-290
"""How far sums may be apart for rounding, relatively, and where they are too small for that."""
_UNMATCHED = (msgspec.MsgspecError, ValueError, RecursionError)
"""What reading JSON that does not match its schema raises."""
_EMPTY = Raw(b"")
_NOTHING: dict[str, Any] = {}
"""The empty dict of all records, which nobody changes."""
_LINE = re.compile(rb'\{"record":(\{.*\}),"schema":([0-9]{1,9}),"sha256":"([0-9a-f]{64})"\}\n', re.DOTALL)


class _Ref(Struct, frozen=True):
    name: Text = ""
    version: Count = 0
    params: dict[str, Any] = {}


class _RunFields(Struct, frozen=True):
    """What tables read of a run; its other fields, which are only shown, may have any value."""

    dataset: _Ref | None = None
    target: Text = ""
    seed: Count = 0
    labelled_target: Count = 0
    sources: list[Text] = []
    split_sources: dict[str, Any] | None = None


class Provenance(Struct, frozen=True):
    """What is read of a record's provenance; other fields may hold anything."""

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


LATER = frozenset({"confusion", "sum_absolute_error", "sum_labels", "sum_squared_labels", "metrics", "saved", "arrays"})
"""Fields added after the first records: omitted from a file when empty, so that older files do not change."""


@dataclass(frozen=True)
class Outcome:
    """The target's test result over n_test examples: n_correct for classification, sum_squared_error for regression.

    A target without labels has n_test 0 and nothing else: what nobody can count.

    The other fields are None in records from before they existed: `confusion` for classification, sorted triples (true
    class, predicted class, examples); for regression the sums of absolute errors, of labels and of their squares.
    """

    n_test: Count
    n_correct: Count | None = None
    sum_squared_error: float | None = None
    confusion: Pairs | None = None
    sum_absolute_error: float | None = None
    sum_labels: float | None = None
    sum_squared_labels: float | None = None

    @property
    def is_possible(self) -> bool:
        """Whether the counts are possible: none, at most as many correct ones as examples, or errors that add up."""
        sums = (self.sum_absolute_error, self.sum_labels, self.sum_squared_labels)
        if self.n_test == 0:
            return all(value is None for name, value in vars(self).items() if name != "n_test")
        if self.n_test < 0 or (self.n_correct is None) == (self.sum_squared_error is None):
            return False
        if self.n_correct is not None:
            return 0 <= self.n_correct <= self.n_test and self._counts_add_up and sums == (None,) * len(sums)
        squares = (self.sum_squared_error, self.sum_absolute_error, self.sum_squared_labels)
        whole = None not in sums or sums == (None,) * len(sums)
        if not whole or self.confusion is not None or any(value is not None and value < 0 for value in squares):
            return False
        return self._sums_add_up

    def suits(self, task: str) -> bool:
        """Whether it is the outcome of a run with such a task."""
        if self.n_test == 0:
            return True
        return task in TASK_KINDS and (self.n_correct is not None) == TASK_KINDS[task].has_classes

    @property
    def _counts_add_up(self) -> bool:
        if self.confusion is None:
            return True
        places = [(true, predicted) for true, predicted, _ in self.confusion]
        right = sum(count for true, predicted, count in self.confusion if true == predicted)
        total = sum(count for *_, count in self.confusion)
        return (total, right) == (self.n_test, self.n_correct) and len(set(places)) == len(places)

    @property
    def _sums_add_up(self) -> bool:
        """Whether these sums of n numbers can be those of the same numbers as the sums of their squares."""
        errors, labels = self.sum_absolute_error, self.sum_labels
        if errors is None or labels is None or self.sum_squared_error is None or self.sum_squared_labels is None:
            return True
        pairs = [
            (errors * errors, self.n_test * self.sum_squared_error),
            (self.sum_squared_error, errors * errors),
            (labels * labels, self.n_test * self.sum_squared_labels),
        ]
        return all(less <= more * (1 + _ROUNDING) + _TINY for less, more in pairs)


@dataclass(frozen=True)
class Curves:
    """The course of training; each is a list of epochs, each a list of one number a group.

    Attributes:
        groups: the labelled groups in order, each a list of the domains, or parts of domains, that are sampled as one.
        risks: mean over the epoch's steps.
        gaps: mean over the epoch's steps.
        weights: exponential moving average with decay 0.9 over the steps, read at the epoch's end.
    """

    groups: list[list[str]]
    risks: list[list[float]]
    gaps: list[list[float]]
    weights: list[list[float]]


@dataclass(frozen=True)
class Record:
    """The outcome of one cell.

    Attributes:
        key: the cell's key.
        cell: the cell as plain JSON (`RunSpec.to_json`).
        status: ok, diverged (a loss was not finite), failed, timeout, oom or skipped.
        outcome: None unless ok.
        curves: None if there are none.
        bound: measurable terms of the paper's equation 2: effective_sample_size m / ||alpha||^2 (if groups differ in
            size, 1 / sum_i alpha_i^2 / m_i), weights_norm.
        validation: score by validator.
        metrics: by name the value of each metric that needs the outputs and that the cell requests.
        target_labels: whether training used the target's labels: those of all its training examples, or as many as the
            cell's `labelled_target`, if it has one.
        message: one line on the fault, or None.
        timing: seconds by part, and steps; not part of the result.
        provenance: versions of libraries and of plugins, device, stack size and, for a scheme of several stages, the
            data that each may see; not part of the result.
        saved: the sha256 of each file of arrays stored with the record, such as `predictions`; not part of the result.
        arrays: the bytes of these files, only in a record that is about to be stored.
    """

    key: Digest
    cell: dict[str, Any]
    status: Status
    outcome: Outcome | None = None
    curves: Curves | None = None
    bound: Numbers = field(default_factory=dict)
    validation: Numbers = field(default_factory=dict)
    target_labels: bool = False
    message: Text | None = None
    timing: Numbers = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    metrics: Numbers = field(default_factory=dict)
    saved: Saved = field(default_factory=dict)
    arrays: Annotated[dict[str, bytes], Meta(max_length=0)] = field(default_factory=dict, compare=False, repr=False)


class _OfCell(Struct, frozen=True, gc=False):
    dataset: Raw = Raw(b"{}")
    target: Text = ""


class Counts(Struct, frozen=True, gc=False):
    """What tables need of an outcome."""

    n_test: Count | None = None
    n_correct: Count | None = None
    sum_squared_error: float | None = None


class _Confusion(Struct, frozen=True, gc=False):
    confusion: Pairs | None = None


class _Tested(Struct, frozen=True, gc=False):
    outcome: _Confusion | None = None


class RecordSummary(Struct, frozen=True, gc=False):
    """What tables need of a record; `dataset` and `provenance` stay JSON, since they are the same in most records.

    `cell` is empty once its parts are read. `digest` is the sha256 of the line, by which equal lines are known, as 64
    hexadecimal digits.
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
        dataset = _shared(bytes(cell.dataset), _Ref)
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
    if hashlib.sha256(canonical_json(msgspec.json.decode(read.cell)).encode()).hexdigest() != read.key:
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
    view, schema = memoryview(data), int(parts[2])
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


def same_result(first: Record, second: Record) -> bool:
    """Whether two records hold the same result: everything except timing, provenance and stored arrays.

    Counts that an older record does not have make no difference.
    """
    a, b = (replace(record, timing={}, provenance={}, saved={}, outcome=None) for record in (first, second))
    one, other = ({} if record.outcome is None else vars(record.outcome) for record in (first, second))
    pairs = {name: (one.get(name), other.get(name)) for name in one | other}
    return a == b and all(x == y or (name in LATER and None in (x, y)) for name, (x, y) in pairs.items())
