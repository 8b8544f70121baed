"""Loads the predictions of runs for each test example, if their suite keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from msda_bench.errors import StoreError
from msda_bench.results.confusion import PLACES
from msda_bench.results.frame import runs_of
from msda_bench.results.recorded import read_record, stored
from msda_bench.results.select import select
from msda_bench.store.files import load_arrays


def load_predictions(runs: str | Path | pd.DataFrame) -> pd.DataFrame:
    """Loads the predictions of runs for each test example, from suites with `keep: [predictions]`.

    Args:
        runs: a result folder, or a frame from `load_results`, whose folder is read for these runs.

    Returns:
        One row for each run and test example: `experiment, target, method, seed, example` (its place in the
        split's test part), `label` and `predicted` (class numbers, or values), and for classification a float32 column
        per class: `probability_0` and so on. Runs without kept predictions have no rows.

    Raises:
        StoreError: no run has kept predictions, or a file is missing, damaged or unreadable.
    """
    chosen = select(runs_of(runs))
    parts = list(_parts(chosen[(chosen["status"] == "ok").to_numpy()]))
    if not parts:
        raise StoreError("no run here keeps its predictions; add `keep: [predictions]` to the suite and run it again")
    return pd.concat(parts, ignore_index=True).astype(dict.fromkeys(PLACES[:3], "category"))


def _parts(runs: pd.DataFrame) -> Iterator[pd.DataFrame]:
    places = runs[[*PLACES, "task"]].astype(object)
    for row, key, store in stored(runs):
        record = read_record(store, key, curves=False)
        if "predictions" not in record.saved:
            continue
        arrays = load_arrays(record, store.path(key), "predictions")
        task, place = places.loc[row, "task"], {name: places.loc[row, name] for name in PLACES}
        label, outputs = arrays["label"], arrays["outputs"]
        columns: dict[str, Any] = {"example": np.arange(len(label)), "label": label, "predicted": arrays["predicted"]}
        if task == "classification":
            columns |= {f"probability_{one}": each for one, each in enumerate(_softmax(outputs).T)}
        yield pd.DataFrame(columns).assign(**place)[[*PLACES, *columns]]


def _softmax(outputs: Any) -> Any:
    shares = np.exp(outputs - outputs.max(1, keepdims=True))
    return (shares / shares.sum(1, keepdims=True)).astype(np.float32)
