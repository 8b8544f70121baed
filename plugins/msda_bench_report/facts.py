"""Collects facts on how an experiment's runs were made, from their records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from msda_bench.errors import printable
from msda_bench.results.recorded import load_cells

_LONG = 300
_SOFTWARE = {
    "components from": "distributions",
    "Python": "python",
    "PyTorch": "torch",
    "NumPy": "numpy",
    "kernels (numba)": "numba",
}
_DEVICE = {"device": "device", "name": "device_name", "system": "platform", "runs in a stack": "stack"}
_PROTOCOL = ("dataset", "fingerprint", "engine", "backbone", "training")
_WORDS: dict[str, dict[Any, str]] = {
    "numba": {"": "plain Python loops, which are slower and round differently"},
    "target_labels": {True: "seen, by a method that may", False: "not seen"},
}

Facts = dict[str, list[tuple[str, int]]]
"""Values by label, each with its number of runs, the most frequent first."""


def facts(runs: pd.DataFrame) -> dict[str, Facts]:
    """Facts on one experiment's runs, by heading; facts without a value are omitted."""
    made = runs[(runs["status"] != "missing").to_numpy()].copy()
    # Runs of one method and target differ only in the seed.
    cells = load_cells(made.drop_duplicates(["method", "target"])).values()
    made["numba"] = made["numba"].where(made["device"] == "cpu")  # a GPU has kernels of its own
    values = {
        "Software": {label: _column(made, name) for label, name in _SOFTWARE.items()},
        "Device": {label: _column(made, name) for label, name in _DEVICE.items()},
        "Data and protocol": {label: [_part(label, cell) for cell in cells] for label in _PROTOCOL},
    }
    values["Data and protocol"]["target labels in training"] = _column(made, "target_labels")
    known = {
        heading: {label: counts for label, column in columns.items() if (counts := _counts(column))}
        for heading, columns in values.items()
    }
    return {heading: columns for heading, columns in known.items() if columns}


def _column(made: pd.DataFrame, name: str) -> list[Any]:
    words = _WORDS.get(name, {})
    return [words.get(value, value) for value in made[name].dropna()]


def _counts(values: Iterable[Any]) -> list[tuple[str, int]]:
    counts = Counter(value for value in values if value is not None)
    texts = ((printable(value, _LONG), count) for value, count in counts.items())
    return sorted(texts, key=lambda item: (-item[1], item[0]))


def _part(label: str, cell: Mapping[str, Any]) -> str | None:
    """A part of a cell in words: a component with its parameters and version, settings, or a value."""
    value = cell.get(label)
    if not isinstance(value, dict):
        return None if value is None else _text(value)
    if label == "training":
        return _settings(value)
    given = _settings(params) if isinstance(params := value.get("params"), dict) else ""
    return f"{value.get('name')}{f'({given})' if given else ''}, version {value.get('version')}"


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_text(value)}" for name, value in values.items() if value is not None)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return f"({', '.join(f'{name} {_text(inner)}' for name, inner in value.items())})"
    return value if isinstance(value, str) else json.dumps(value)
