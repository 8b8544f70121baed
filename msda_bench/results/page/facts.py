"""Where an experiment's numbers come from, as its records say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from msda_bench.errors import printable
from msda_bench.results.frame import load_cells

MOST = 8
"""Values of one fact that are shown."""
_LONG = 300


@dataclass(frozen=True)
class Fact:
    """Something that runs say of themselves.

    Attributes:
        label: what it is.
        values: each with the number of runs that say it, most first.
        more: other values, which are not shown.
    """

    label: str
    values: tuple[tuple[str, int], ...]
    more: int


def facts(runs: pd.DataFrame) -> dict[str, tuple[Fact, ...]]:
    """Facts by heading; what no run says anything of is left out.

    Args:
        runs: of one experiment.
    """
    made = runs[(runs["status"] != "missing").to_numpy()]
    # Runs of one method and target differ in the seed alone.
    cells = list(load_cells(made.drop_duplicates(["method", "target"])).values())
    groups = {
        "Software": [_column(made, label, name) for label, name in _SOFTWARE.items()],
        "Device": [_column(made, label, name) for label, name in _DEVICE.items()],
        "Data and protocol": [_fact(label, [read(cell) for cell in cells]) for label, read in _PROTOCOL.items()],
    }
    labels = made["target_labels"].map({True: "asked for, by a method that may", False: "never asked for"})
    groups["Data and protocol"].append(_fact("target labels in training", labels.tolist()))
    return {heading: known for heading, found in groups.items() if (known := tuple(filter(None, found)))}


def _column(made: pd.DataFrame, label: str, name: str) -> Fact | None:
    values = made[name].astype(object)
    if name == "numba":
        values = values.where(values != "", "plain Python loops, which are slower and round otherwise")
    return _fact(label, values.tolist())


def _fact(label: str, values: Sequence[Any]) -> Fact | None:
    counts = Counter(printable(value, _LONG) for value in values if value is not None and not pd.isna(value))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Fact(label, tuple(ordered[:MOST]), max(0, len(ordered) - MOST)) if ordered else None


def _component(part: str) -> Callable[[Mapping[str, Any]], str | None]:
    def read(cell: Mapping[str, Any]) -> str | None:
        ref = cell.get(part)
        if not isinstance(ref, dict):
            return None
        params = ref.get("params")
        given = ", ".join(_pairs(params)) if isinstance(params, dict) else ""
        return f"{ref.get('name')}{f'({given})' if given else ''}, version {ref.get('version')}"

    return read


def _training(cell: Mapping[str, Any]) -> str | None:
    training = cell.get("training")
    return ", ".join(_pairs(training)) if isinstance(training, dict) else None


def _pairs(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if value is not None:
            yield f"{name} {value if isinstance(value, str) else json.dumps(value)}"


def _plain(name: str) -> Callable[[Mapping[str, Any]], str | None]:
    def read(cell: Mapping[str, Any]) -> str | None:
        value = cell.get(name)
        return value if value is None or isinstance(value, str) else json.dumps(value)

    return read


_SOFTWARE = {
    "components from": "distributions",
    "Python": "python",
    "PyTorch": "torch",
    "NumPy": "numpy",
    "kernels (numba)": "numba",
}
_DEVICE = {"device": "device", "name": "device_name", "system": "platform", "runs in a stack": "stack"}
_PROTOCOL = {
    "dataset": _component("dataset"),
    "fingerprint": _plain("fingerprint"),
    "engine": _plain("engine"),
    "backbone": _component("backbone"),
    "training": _training,
}
