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
from msda_bench.results.runs import results_of
from msda_bench.store import Record, Store
from msda_bench.store.record import Counts, Provenance, RecordSummary

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
    # What most records have in common is decoded once.
    codes, made_as = pd.factorize(np.array([bytes(head.provenance) for head in heads], dtype=object))
    made = [_made(msgspec.json.decode(data, type=Provenance)) for data in made_as]
    stacks = np.array([of.pop("stack") for of in made], np.float64)
    datasets = {bytes(head.cell.dataset) for head in heads}
    params = {data: msgspec.json.decode(data).get("params", {}) for data in datasets}
    outcomes = [head.outcome or Counts() for head in heads]
    n_train = [
        _n_train(params[bytes(head.cell.dataset)], head.cell.target, outcome.n_test)
        for head, outcome in zip(heads, outcomes, strict=True)
    ]
    texts: dict[str, list[Any]] = {name: [getattr(head, name) for head in heads] for name in ("status", "message")}
    numbers: dict[str, Any] = {
        name: [getattr(outcome, name) for outcome in outcomes] for name in Counts.__struct_fields__
    }
    numbers |= {name: [head.bound.get(name) for head in heads] for name in ("effective_sample_size", "weights_norm")}
    numbers |= {
        "train_seconds": [_possible(head.timing.get("train"), LONGEST, float) for head in heads],
        "steps": [_possible(head.timing.get("steps"), MOST_WHOLE, int) for head in heads],
        "n_train": n_train,
        "stack": stacks[codes],
        "target_labels": [head.target_labels for head in heads],
    }
    validators = {name for head in heads for name in head.validation}
    numbers |= {f"{VALIDATOR}{name}": [head.validation.get(name) for head in heads] for name in sorted(validators)}
    typed: dict[str, Any] = {name: pd.Categorical(values) for name, values in texts.items()}
    typed |= {name: np.array(values, np.float64) for name, values in numbers.items()}
    told = dict.fromkeys(name for of in made for name in of)
    typed |= {name: pd.Categorical([of.get(name) for of in made]).take(codes) for name in told}
    return pd.DataFrame(typed, index=pd.Index([head.key for head in heads], dtype=object))


def _made(where: Provenance) -> dict[str, Any]:
    put_back, versions = where.put_back, sorted(where.distributions.items())
    return msgspec.structs.asdict(where) | {
        "numba": None if where.numba is msgspec.UNSET else where.numba or "",
        "distributions": "; ".join(f"{name} {version}" for name, version in versions),
        "put_back": " and ".join(map(str, put_back)) if isinstance(put_back, list) else None,
        **{f"{VERSION}{name}": version for name, version in versions},
    }


def _possible(value: float | None, most: float, as_type: Callable[[float], _Number]) -> _Number | None:
    """A number, as this type makes it; None if it is missing, or larger than any that was measured."""
    return None if value is None or abs(value) > most else as_type(value)


_OFFICIAL = ("test_rows", "test_images")
"""Parameters of a user's own data that say which examples are the test."""


def _n_train(params: dict[str, Any], target: str, n_test: int | None) -> int | None:
    """The target's training examples, as the cell says how many, or which share of the examples the test is drawn from.

    A share counts where the size of the test is one, too, or the test has the rest. With groups it is about that. With
    official test rows it is of the others, whose number no record has.
    """
    if any(params.get(name) is not None for name in _OFFICIAL):
        return None
    size = params.get("train") if params.get("target_train") is None else params["target_train"]
    if isinstance(size, dict):
        size = size.get(target, size.get("default"))
    if params.get("protocol") == "transductive":
        return None
    if type(size) is int:
        return size if abs(size) < MOST_WHOLE else None
    return _share(size, params.get("test"), n_test) if type(size) is float else None


def _share(train: float, test: object, n_test: int | None) -> int | None:
    """The number of training examples that a share makes, if the test has another share, or the rest."""
    if n_test is None or not (test is None or type(test) is float):
        return None
    tested = 1 - train if test is None else min(test, 1 - train)
    return _possible(n_test * train / tested, MOST_WHOLE, round) if 0 < train < 1 and tested > 0 else None


def load_cells(runs: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Reads the cells of a frame's records, by key, as plain JSON values; see `read_records`."""
    return {record.key: record.cell for _, record, _ in read_records(runs)}


def read_records(runs: pd.DataFrame) -> Iterator[tuple[Any, Record, Store]]:
    """Reads the records of a frame again; yields the label of each row with its record and the store of that.

    Rows of joined runs are read from their own folders. Skips rows without a record or a folder.
    """
    results, runs = results_of(runs), runs[(runs["status"] != "missing").to_numpy()]
    folders = runs["folder"] if "folder" in runs else pd.Series(results.folder, runs.index, dtype=object)
    stores = {} if results.store is None else {str(results.store.folder): results.store}
    stores |= {folder: Store(Path(folder)).refresh() for folder in folders.dropna().unique() if folder not in stores}
    for row, key, folder in zip(runs.index, runs["key"], folders, strict=True):
        if folder in stores:
            if (record := stores[folder].read(key)) is None:
                raise StoreError(f"{folder}: the record of run {key} is gone; run the command again")
            yield row, record, stores[folder]


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
    """Whether these arrays have numbers for each example, and for a classification an output for each class, too."""
    names = (*OF_EXAMPLES, "outputs") if classifies else OF_EXAMPLES
    if any(name not in arrays or arrays[name].dtype.kind not in "iuf" for name in names):
        return False
    sizes = {arrays[name].shape[:1] for name in names}
    flat = all(arrays[name].ndim == 1 for name in OF_EXAMPLES)
    return len(sizes) == 1 and flat and (not classifies or arrays["outputs"].ndim == 2)  # noqa: PLR2004 - examples, classes
