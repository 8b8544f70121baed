"""Collects facts on how an experiment's runs were made, from their records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import pandas as pd

from msda_bench.analysis import load_cells, printable

_LONG = 300
_SOFTWARE = {
    "components from": "distributions",
    "Python": "python",
    "PyTorch": "torch",
    "NumPy": "numpy",
    "kernels (numba)": "numba",
}
_DEVICE = {"device": "device", "name": "device_name", "system": "platform", "runs in a stack": "stack"}
_WORDS: dict[str, dict[Any, str]] = {
    "numba": {"": "plain Python loops, which are slower and round differently"},
    "target_labels": {True: "seen, by a method that may", False: "not seen"},
}

Facts = dict[str, list[tuple[str, int]]]
"""Values by label, each with its number of runs, the most frequent first."""


def facts(runs: pd.DataFrame) -> dict[str, Facts]:
    """Facts on one experiment's runs, by heading; facts without a value are omitted."""
    made = runs[(runs["status"] != "missing").to_numpy()]
    # Runs of one method and target differ only in the seed.
    cells = load_cells(made.drop_duplicates(["method", "target"])).values()
    protocol = {label: [read(cell) for cell in cells] for label, read in _PROTOCOL.items()}
    found = {
        "Software": {label: _column(made, name) for label, name in _SOFTWARE.items()},
        "Device": {label: _column(made, name) for label, name in _DEVICE.items()},
        "Data and protocol": {**protocol, "target labels in training": _column(made, "target_labels")},
    }
    counted = {heading: {label: _counts(values) for label, values in own.items()} for heading, own in found.items()}
    known = {heading: {label: n for label, n in own.items() if n} for heading, own in counted.items()}
    return {heading: own for heading, own in known.items() if own}


def _column(made: pd.DataFrame, name: str) -> list[Any]:
    words = _WORDS.get(name, {})
    return [words.get(value, value) for value in made[name].dropna()]


def _counts(values: Iterable[Any]) -> list[tuple[str, int]]:
    counts = Counter(value for value in values if value is not None)
    texts = ((printable(value, _LONG), count) for value, count in counts.items())
    return sorted(texts, key=lambda item: (-item[1], item[0]))


def _component(part: str, cell: Mapping[str, Any]) -> str | None:
    ref = cell.get(part)
    if not isinstance(ref, dict):
        return None
    given = _pairs("params", ref)
    return f"{ref.get('name')}{f'({given})' if given else ''}, version {ref.get('version')}"


def _pairs(part: str, cell: Mapping[str, Any]) -> str | None:
    values = cell.get(part)
    if not isinstance(values, dict):
        return None
    return ", ".join(f"{name} {_text(value)}" for name, value in values.items() if value is not None)


def _plain(name: str, cell: Mapping[str, Any]) -> str | None:
    return None if cell.get(name) is None else _text(cell[name])


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return f"({', '.join(f'{name} {_text(one)}' for name, one in value.items())})"
    return value if isinstance(value, str) else json.dumps(value)


_PROTOCOL: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
    "dataset": partial(_component, "dataset"),
    "fingerprint": partial(_plain, "fingerprint"),
    "engine": partial(_plain, "engine"),
    "backbone": partial(_component, "backbone"),
    "training": partial(_pairs, "training"),
}
