"""The records of a result folder as a frame, with the one cache, by which an unchanged folder is read in a moment.

`.index` is a cache, never a result: one line with a sha256 of the rest, then the frame's columns as arrays without
pickle. A file counts as unchanged if its size, inode and times are the same, including the time of change, which only
the kernel sets. A cache that is damaged, or of another version or shape, is ignored.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msda_bench import __version__
from msda_bench.atomic import read_cache, write_cache
from msda_bench.errors import StoreError
from msda_bench.store import Record, Store
from msda_bench.store.files import Faults, faults_among, load_arrays
from msda_bench.store.record import RESULTS
from msda_bench.store.store import CELLS

VALIDATOR = "validator:"
"""Prefix of columns with the scores of validators."""
VERSION = "version:"
"""Prefix of columns with the versions of the distributions that made a run."""
INDEX = ".index"
LAYOUT = 3
"""Raised when the columns change, or how they are read from a record."""
FEWEST = 1000
"""The number of new records from which the cache is written."""
_BYTES = 2000
"""The maximum size of a record in the cache, in bytes."""
_SETTLED = 2_000_000_000
"""Nanoseconds after which every file system shows a change in a file's times."""
_MADE_ON = ("device", "device_name", "stack_note", "torch", "python", "numpy", "platform")
_TEXTS = ("status", "message", "numba", "distributions", "put_back", *_MADE_ON)
_NUMBERS = (
    *("n_test", "n_correct", "sum_squared_error", "train_seconds", "steps", "effective_sample_size", "weights_norm"),
    *("n_train", "stack", "target_labels"),
)
_Stamps = NDArray[np.int64]
"""Size, time of the last writing, time of the last change, and inode of each file."""


class Recorded(NamedTuple):
    """The records of some cells.

    Attributes:
        rows: a row for each cell that has a record, by key, with columns of a frame of runs; texts are categories.
        faults: of the requested cells.
        lines: one for each damaged or conflicting record.
    """

    rows: pd.DataFrame
    faults: Faults
    lines: tuple[str, ...]


def read_recorded(store: Store, keys: Iterable[str]) -> Recorded:
    """Reads the records of cells: the result, or the latest failure of a cell that has none.

    Every file is checked against its sha256, except files that an earlier reading found good and that have not changed
    since; `store verify` reads all.

    Raises:
        StoreError: the folder or a record cannot be read.
    """
    files, wanted = store.scan(), list(dict.fromkeys(keys))
    failed = {file.key for file in files if file.kind == "failure"}
    began = time.time_ns()
    stamps = np.array([_stamp(store.folder, key) for key in wanted], np.int64).reshape(-1, 4)
    rows, known = _read(store.folder, len(wanted))
    places = rows.index.get_indexer(pd.Index(wanted, dtype=object))
    same = places >= 0
    same[same] = (known[places[same]] == stamps[same]).all(axis=1)
    there = (stamps[:, 0] >= 0) | np.array([key in failed for key in wanted], bool)
    changed = [key for key, is_changed in zip(wanted, there & ~same, strict=True) if is_changed]
    rows = _joined(rows.iloc[places[same]], recorded_rows(_records(store, changed, failed)))
    rows = rows.loc[[key for key in wanted if key in rows.index]]
    ended = rows["status"].isin(RESULTS).to_numpy(dtype=bool)
    _keep(store.folder, rows[ended], dict(zip(wanted, stamps, strict=True)), set(changed), began)
    faults = faults_among(files, wanted, set(rows.index[ended]))
    return Recorded(rows, faults, (*store.drain_warnings(), *store.conflicting(wanted, files)))


def recorded_rows(records: Iterable[Record]) -> pd.DataFrame:
    """The `rows` of these records."""
    keys: list[str] = []
    # A list for each column, since the garbage collector looks at each of many small objects again and again.
    columns: dict[str, list[Any]] = {name: [] for name in (*_TEXTS, *_NUMBERS)}
    scores: dict[str, dict[int, float]] = {}
    for record in records:
        for name, value in _values(record).items():
            columns[name].append(sys.intern(value) if isinstance(value, str) else value)
        for name, score in record.validation.items():
            scores.setdefault(name, {})[len(keys)] = score
        keys.append(record.key)
    typed: dict[str, Any] = {name: pd.Categorical(columns[name]) for name in _TEXTS}
    typed |= {name: np.array(columns[name], np.float64) for name in _NUMBERS}
    typed |= _versions(typed["distributions"])
    for name, by_place in scores.items():
        typed[f"{VALIDATOR}{name}"] = np.full(len(keys), np.nan)
        typed[f"{VALIDATOR}{name}"][list(by_place)] = list(by_place.values())
    return pd.DataFrame(typed, index=pd.Index(keys, dtype=object))


def _records(store: Store, keys: Iterable[str], failed: set[str]) -> Iterator[Record]:
    for key in keys:
        record = store.read(key, curves=False) or (store.last_failure(key) if key in failed else None)
        if record is not None:
            yield record


def _values(record: Record) -> dict[str, Any]:
    outcome, where, steps = record.outcome, record.provenance, record.timing.get("steps")
    put_back = where.get("put_back")
    return {
        "status": record.status,
        "message": record.message,
        "n_test": outcome and outcome.n_test,
        "n_correct": outcome and outcome.n_correct,
        "sum_squared_error": outcome and outcome.sum_squared_error,
        "n_train": _n_train(record.cell, None if outcome is None else outcome.n_test),
        "train_seconds": record.timing.get("train"),
        "steps": None if steps is None else int(steps),
        "effective_sample_size": record.bound.get("effective_sample_size"),
        "weights_norm": record.bound.get("weights_norm"),
        "target_labels": record.target_labels,
        "numba": (where["numba"] or "") if "numba" in where else None,
        "distributions": json.dumps(sorted(where.get("distributions", {}).items())),
        "put_back": " and ".join(map(str, put_back)) if isinstance(put_back, list) else None,
        "stack": where.get("stack"),
        **{name: where.get(name) for name in _MADE_ON},
    }


def _n_train(cell: Mapping[str, Any], n_test: int | None) -> int | None:
    """The target's training examples, as the cell says how many, or which share of the examples the test is drawn from.

    A share counts where the size of the test is one, too, or the test has the rest. With groups it is about that.
    """
    params, target = cell.get("dataset", {}).get("params", {}), cell.get("target")
    size = params.get("train") if params.get("target_train") is None else params["target_train"]
    if isinstance(size, Mapping):
        size = size.get(target, size.get("default"))
    if params.get("protocol") == "transductive":
        return None
    test = params.get("test")
    if type(size) is float and n_test is not None and type(test) is not int:
        return round(n_test * size / (1 - size if test is None else min(test, 1 - size)))
    return size if type(size) is int else None


def _versions(made: pd.Categorical) -> dict[str, Any]:
    """The distributions in words, and a column for the version of each."""
    pairs = [dict(json.loads(text)) for text in made.categories]
    words = ["; ".join(f"{name} {version}" for name, version in of.items()) for of in pairs]
    texts: dict[str, list[str | None]] = {"distributions": [*words]}
    texts |= {
        f"{VERSION}{name}": [of.get(name) for of in pairs] for name in sorted({name for of in pairs for name in of})
    }
    return {name: pd.Categorical(np.array([*values, None], dtype=object)[made.codes]) for name, values in texts.items()}


def _joined(rows: pd.DataFrame, more: pd.DataFrame) -> pd.DataFrame:
    if rows.empty or more.empty:
        return more if rows.empty else rows
    joined = pd.concat([rows, more])
    texts = [name for name in joined if not pd.api.types.is_numeric_dtype(joined[name].dtype)]
    return joined.astype(dict.fromkeys(texts, "category"))


def _stamp(folder: Path, key: str) -> Sequence[int]:
    try:
        status = os.lstat(f"{folder}/{CELLS}/{key[:2]}/{key}.json")
    except OSError:
        return -1, -1, -1, -1
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino & (1 << 63) - 1


def _keep(folder: Path, rows: pd.DataFrame, stamps: Mapping[str, _Stamps], changed: set[str], began: int) -> None:
    """Keeps results for the next reading, if many are new, without those whose file may just have changed."""
    kept = np.array([stamps[key] for key in rows.index], np.int64).reshape(-1, 4)
    settled = (kept[:, 0] >= 0) & (began - kept[:, 1:3].max(axis=1, initial=0) > _SETTLED)
    rows, kept = rows[settled], kept[settled]
    if sum(key in changed for key in rows.index) >= FEWEST:
        write_cache(folder / INDEX, _packed(rows, kept))


def _packed(rows: pd.DataFrame, stamps: _Stamps) -> bytes:
    texts = {name: column.cat for name, column in rows.items() if isinstance(column.dtype, pd.CategoricalDtype)}
    head = [_version(), list(rows), {name: list(text.categories) for name, text in texts.items()}]
    arrays: dict[str, Any] = {"keys": np.array(rows.index, "S64"), "stamps": stamps}
    for place, name in enumerate(rows):
        arrays[str(place)] = (texts[name].codes if name in texts else rows[name]).to_numpy()
    stream = io.BytesIO()
    np.savez(stream, head=np.frombuffer(json.dumps(head).encode(), np.uint8), **arrays)
    return stream.getvalue()


def _read(folder: Path, records: int) -> tuple[pd.DataFrame, _Stamps]:
    """The rows in the cache, and the stamps of their files."""
    data = read_cache(folder / INDEX, _BYTES * max(records, FEWEST))
    try:
        with np.load(io.BytesIO(data or b""), allow_pickle=False) as arrays:
            version, names, texts = json.loads(bytes(arrays["head"]))
            if version == _version():
                columns = {name: arrays[str(place)] for place, name in enumerate(names)}
                categories = {name: pd.Categorical.from_codes(columns[name], texts[name]) for name in texts}
                keys = pd.Index(arrays["keys"].astype(str), dtype=object)
                return pd.DataFrame(columns | categories, index=keys), arrays["stamps"].reshape(len(keys), 4)
    except (ValueError, TypeError, LookupError, OSError, EOFError, RecursionError, zipfile.BadZipFile):
        pass
    return pd.DataFrame(index=pd.Index([], dtype=object)), np.empty((0, 4), np.int64)


def _version() -> str:
    return f"{LAYOUT} {__version__} {' '.join((*_TEXTS, *_NUMBERS))}"


def load_cells(runs: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Reads the cells of a frame's records, by key, as plain JSON values.

    Raises:
        StoreError: a record cannot be read.
    """
    return {record.key: record.cell for _, record in read_records(runs, curves=False)}


def read_records(runs: pd.DataFrame, *, curves: bool = True) -> Iterator[tuple[Any, Record]]:
    """Reads the records of a frame again; yields the label of each row with its record.

    Rows of merged runs are read from their own folders. Skips rows without a record or a folder.

    Raises:
        StoreError: a record cannot be read, or no longer exists.
    """
    for row, key, store in stored(runs):
        yield row, read_record(store, key, curves=curves)


def kept_files(runs: pd.DataFrame, name: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yields the label of each row whose record has a file of arrays of this name, with the arrays.

    Raises:
        StoreError: a record is missing, or it or the file is damaged or cannot be read.
    """
    for row, key, store in stored(runs):
        if (arrays := kept_file(store, key, name)) is not None:
            yield row, arrays


def kept_file(store: Store, key: str, name: str) -> dict[str, Any] | None:
    """The arrays of this name beside a record; None if it has none; raises as `kept_files`."""
    record = read_record(store, key, curves=False)
    return load_arrays(record, store.path(key), name) if name in record.saved else None


def read_record(store: Store, key: str, *, curves: bool = True) -> Record:
    """Reads the result of a cell, or its latest failure.

    Raises:
        StoreError: the record cannot be read, or no longer exists.
    """
    record = store.read(key, curves=curves) or store.last_failure(key)
    if record is None:
        raise StoreError(f"{store.folder}: the record of cell {key} is gone; run the command again")
    return record


def stored(runs: pd.DataFrame) -> Iterator[tuple[Any, str, Store]]:
    """Yields the label, key and store of each row that has a record in a folder."""
    runs = runs[(runs["status"] != "missing").to_numpy()]
    folders = runs["folder"] if "folder" in runs else pd.Series(runs.attrs.get("folder"), runs.index, dtype=object)
    stores = {folder: Store(Path(folder), repair=False) for folder in folders.dropna().unique()}
    for row, key, folder in zip(runs.index, runs["key"], folders, strict=True):
        if folder in stores:
            yield row, key, stores[folder]
