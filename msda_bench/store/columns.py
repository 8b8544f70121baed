"""The records of a result folder as columns, for tables; cells and curves stay on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msda_bench.store.index import Index, Row, stamp_of
from msda_bench.store.names import Faults, faults_among
from msda_bench.store.record import RESULTS, Record
from msda_bench.store.store import CELLS, Store

_PROVENANCE = ("device", "device_name", "stack", "stack_note", "torch", "python", "numpy", "platform")
COLUMNS = (
    *("status", "message", "n_test", "n_correct", "sum_squared_error", "train_seconds", "steps"),
    *("effective_sample_size", "weights_norm", "target_labels", "numba", "distributions", "validation", "put_back"),
    *_PROVENANCE,
)
"""The columns read from a record, named as in a frame of runs, except that `distributions` and `validation` are pairs,
and `numba` is empty if it was not used."""


class Columns(NamedTuple):
    """Columns of the records of some cells.

    Attributes:
        keys: the cells that have a record, in the requested order.
        values: for each name in `COLUMNS`, a value for each of `keys`; None if a record has none.
        faults: of the requested cells.
        lines: one for each damaged or conflicting record.
    """

    keys: list[str]
    values: dict[str, list[Any]]
    faults: Faults
    lines: tuple[str, ...]


def read_columns(store: Store, keys: Iterable[str]) -> Columns:
    """Reads the records of cells: the result, or the latest failure of a cell that has none.

    Every file is checked against its sha256, except files that an earlier reading found good and that have not changed
    since; `store verify` reads all. In a large folder the result is cached; see `index`.

    Raises:
        StoreError: the folder or a record cannot be read.
    """
    files, wanted = store.scan(), dict.fromkeys(keys)
    failed = {file.key for file in files if file.kind == "failure"}
    index = Index(store.folder, COLUMNS, len(wanted))
    rows: dict[str, Row] = {}
    for key in wanted:
        stamp = stamp_of(f"{store.folder}/{CELLS}/{key[:2]}/{key}.json")
        row = index.find(key, stamp)
        if row is None and (record := store.read(key, curves=False)) is not None:
            row = _row(record)
            index.add(key, stamp, row)
        if row is None and key in failed and (failure := store.last_failure(key)) is not None:
            row = _row(failure)
        if row is not None:
            rows[key] = row
    index.write(rows)
    values = _transposed(rows)
    ended = {key for key, status in zip(rows, values["status"], strict=True) if status in RESULTS}
    faults = faults_among(files, wanted, ended)
    return Columns(list(rows), values, faults, (*store.take_notes(), *store.conflicting(wanted, files)))


def columns_of(records: Mapping[str, Record]) -> Columns:
    """Columns of these records, by key."""
    rows = {key: _row(record) for key, record in records.items()}
    return Columns(list(rows), _transposed(rows), Faults(), ())


def _transposed(rows: Mapping[str, Row]) -> dict[str, list[Any]]:
    columns = zip(*rows.values(), strict=True) if rows else ((),) * len(COLUMNS)
    return dict(zip(COLUMNS, map(list, columns), strict=True))


def _row(record: Record) -> Row:
    outcome, where = record.outcome, record.provenance
    return (
        record.status,
        record.message,
        *((outcome.n_test, outcome.n_correct, outcome.sum_squared_error) if outcome else (None, None, None)),
        record.timing.get("train"),
        record.timing.get("steps"),
        record.bound.get("effective_sample_size"),
        record.bound.get("weights_norm"),
        record.target_labels,
        (where["numba"] or "") if "numba" in where else None,
        tuple(sorted(where.get("distributions", {}).items())),
        tuple(record.validation.items()),
        " and ".join(map(str, where["put_back"])) if isinstance(where.get("put_back"), list) else None,
        *map(where.get, _PROVENANCE),
    )
