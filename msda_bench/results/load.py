"""Loads the records of a result folder as a frame, and the parts of records that a frame does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from msda_bench.errors import StoreError
from msda_bench.results.runs import ok_runs, recorded_runs, results_of
from msda_bench.store import Record, Store
from msda_bench.store.codec import Provenance, RecordSummary
from msda_bench.store.record import Counts

VALIDATOR = "validator:"
"""Prefix of columns with the scores of validators."""
MOST_WHOLE = 1 << 53
"""Whole numbers up to this one are exact as floats."""
LONGEST = 1e15
"""The maximum number of seconds that a run took; more are 30 million years."""
OF_EXAMPLES = ("row", "label", "predicted")
"""The arrays of predictions with a number for each example."""
_Number = TypeVar("_Number", int, float)
VERSION = "version:"
"""Prefix of columns with the versions of the distributions that made a run."""


def recorded_rows(heads: Sequence[RecordSummary]) -> pd.DataFrame:
    """A row for each of these records, by key, with columns of a frame of runs; texts are categories."""
    columns: dict[str, Any] = {}
    for name in ("status", "message"):
        columns[name] = pd.Categorical([getattr(head, name) for head in heads])
    for name, values in _numbers(heads).items():
        columns[name] = np.array(values, np.float64)
    # Most records share their provenance, so each distinct one is decoded once.
    codes, distinct = pd.factorize(np.array([bytes(head.provenance) for head in heads], dtype=object))
    made = [_made(msgspec.json.decode(data, type=Provenance)) for data in distinct]
    stacks = np.array([where.pop("stack") for where in made], np.float64)
    columns["stack"] = stacks[codes]
    for name in dict.fromkeys(name for where in made for name in where):
        columns[name] = pd.Categorical([where.get(name) for where in made]).take(codes)
    return pd.DataFrame(columns, index=pd.Index([head.key for head in heads], dtype=object))


def _numbers(heads: Sequence[RecordSummary]) -> dict[str, list[Any]]:
    """The numeric columns, but for those of the provenance."""
    columns: dict[str, list[Any]] = {}
    outcomes = [head.outcome or Counts() for head in heads]
    for name in Counts.__struct_fields__:
        columns[name] = [getattr(outcome, name) for outcome in outcomes]
    for name in ("effective_sample_size", "weights_norm"):
        columns[name] = [head.bound.get(name) for head in heads]
    columns["train_seconds"] = [_possible(head.timing.get("train"), LONGEST, float) for head in heads]
    columns["steps"] = [_possible(head.timing.get("steps"), MOST_WHOLE, int) for head in heads]
    columns["n_train"] = _training_sizes(heads)
    columns["target_labels"] = [head.target_labels for head in heads]
    for name in sorted({name for head in heads for name in head.validation}):
        columns[f"{VALIDATOR}{name}"] = [head.validation.get(name) for head in heads]
    return columns


def _training_sizes(heads: Sequence[RecordSummary]) -> list[int | None]:
    known: dict[tuple[bytes, str, int | None], int | None] = {}
    sizes = []
    for head in heads:
        n_test = head.outcome.n_test if head.outcome else None
        place = (bytes(head.dataset), head.target, n_test)
        if place not in known:
            params = msgspec.json.decode(head.dataset).get("params", {})
            known[place] = _n_train(params, head.target, n_test)
        sizes.append(known[place])
    return sizes


def _made(where: Provenance) -> dict[str, Any]:
    made = msgspec.structs.asdict(where)
    made["numba"] = None if where.numba is msgspec.UNSET else where.numba or ""
    made["put_back"] = None
    if isinstance(where.put_back, list):
        made["put_back"] = " and ".join(map(str, where.put_back))
    versions = sorted(where.distributions.items())
    made["distributions"] = "; ".join(f"{name} {version}" for name, version in versions)
    for name, version in versions:
        made[f"{VERSION}{name}"] = version
    return made


def _possible(value: float | None, most: float, as_type: Callable[[float], _Number]) -> _Number | None:
    """A number, as this type makes it; None if it is missing, or larger than any that was measured."""
    return None if value is None or abs(value) > most else as_type(value)


_OFFICIAL = ("test_rows", "test_images")
"""Parameters of a user's own data that say which examples are the test."""


def _n_train(params: dict[str, Any], target: str, n_test: int | None) -> int | None:
    """The number of the target's training examples, from the cell: a number, or a share of the examples.

    A share counts only if the test's size is a share, too, or if the test is the rest. With groups the number is
    approximate. With official test rows it is a share of the other rows, and no record has their number.
    """
    if any(params.get(name) is not None for name in _OFFICIAL):
        return None
    if params.get("protocol") == "transductive":
        return None
    size = params.get("target_train")
    if size is None:
        size = params.get("train")
    if isinstance(size, dict):
        size = size.get(target, size.get("default"))
    if type(size) is int:
        return size if abs(size) < MOST_WHOLE else None
    if type(size) is float:
        return _share(size, params.get("test"), n_test)
    return None


def _share(train: float, test: object, n_test: int | None) -> int | None:
    """The number of training examples that a share makes, if the test has another share, or the rest."""
    rest = 1 - train
    if test is None:
        tested = rest
    elif type(test) is float:
        tested = min(test, rest)
    else:
        return None
    if n_test is None or tested <= 0 or not 0 < train < 1:
        return None
    return _possible(n_test * train / tested, MOST_WHOLE, round)


def load_cells(runs: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Reads the cells of a frame's records, by key, as plain JSON values; see `read_records`."""
    return {record.key: record.cell for _, record, _ in read_records(runs)}


def read_records(runs: pd.DataFrame) -> Iterator[tuple[Any, Record, Store]]:
    """Reads the records of a frame again; yields the label of each row with its record and the store of that.

    Rows of joined runs are read from their own folders. Skips rows without a record or a folder.
    """
    for row, key, store in _recorded(runs):
        record = store.read(key)
        if record is None:
            raise StoreError(f"{store.folder}: the record of run {key} is gone; run the command again")
        yield row, record, store


def tested_classes(runs: pd.DataFrame) -> dict[tuple[str, int], dict[int, int]]:
    """The number of test examples of each class, by target and seed, as the records of a frame tell it.

    All methods are tested on the same examples, so those of each target's first method that is ok tell them.
    """
    first: dict[str, str] = {}
    places: dict[Any, tuple[str, int]] = {}
    for row, target, method, seed in ok_runs(runs)[["target", "method", "seed"]].itertuples(name=None):
        if method == first.setdefault(target, method):
            places[row] = target, seed
    tested: dict[tuple[str, int], dict[int, int]] = {}
    for row, key, store in _recorded(runs.loc[[*places]]):
        classes = store.classes(key)
        if classes:
            tested[places[row]] = classes
    return tested


def _recorded(runs: pd.DataFrame) -> Iterator[tuple[Any, str, Store]]:
    """The label of each row that has a record, with the key of the record and its store."""
    results = results_of(runs)
    recorded = recorded_runs(runs)
    folders = [results.folder] * len(recorded)
    if "folder" in recorded:
        folders = recorded["folder"].tolist()
    stores = {}
    if results.store is not None:
        stores[str(results.store.folder)] = results.store
    for row, key, folder in zip(recorded.index, recorded["key"], folders, strict=True):
        if folder is None or pd.isna(folder):
            continue
        if folder not in stores:
            stores[folder] = Store(Path(folder)).refresh()
        yield row, key, stores[folder]


def kept_predictions(store: Store, record: Record, *, classifies: bool) -> Mapping[str, NDArray[np.generic]] | None:
    """The arrays of a run's predictions; None if it keeps none.

    Raises:
        StoreError: they are damaged, or none of such a run.
    """
    arrays = store.kept(record, "predictions")
    if arrays is not None and not _are_predictions(arrays, classifies=classifies):
        raise StoreError(f"record {record.key}: its arrays are no predictions of such a run; train it again")
    return arrays


def _are_predictions(arrays: Mapping[str, NDArray[np.generic]], *, classifies: bool) -> bool:
    """Whether these arrays have a number for each example, and for a classification also an output for each class."""
    names = (*OF_EXAMPLES, "outputs") if classifies else OF_EXAMPLES
    if any(name not in arrays or arrays[name].dtype.kind not in "iuf" for name in names):
        return False
    if any(arrays[name].ndim != 1 for name in OF_EXAMPLES):
        return False
    if classifies and arrays["outputs"].ndim != 2:  # noqa: PLR2004 - examples, classes
        return False
    sizes = {arrays[name].shape[:1] for name in names}
    return len(sizes) == 1
