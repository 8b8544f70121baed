"""The protocol of a reference: what its ranked runs have in common, and how other runs differ from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from msda_bench.results.load import load_cells
from msda_bench.results.runs import recorded_runs
from msda_bench.results.words import spans
from msda_bench.suite.issues import shown_value
from msda_bench.suite.plan import Experiment, Search
from msda_bench.suite.protocol import UpdateRule
from msda_bench.suite.run_spec import canonical_json

_PARTS = ("engine", "dataset", "fingerprint", "backbone", "training", "labelled_target", "validators", "metrics")
"""The parts of a cell that are the protocol's; the rest is the method's, or the place in the table."""
_OWN = tuple(f"training.{name}" for name in UpdateRule.model_fields)
"""Prefixes of settings that a method may replace: how its weights are updated."""


@dataclass(frozen=True)
class ReferenceProtocol:
    """What the ranked runs of an experiment have in common.

    Attributes:
        values: the values that their cells have, by dotted path; null where a cell has none.
        candidates: the maximum number of candidates of a method; 1 if nothing is selected.
        by: the criterion that selects; None if none does.
    """

    values: dict[str, list[Any]]
    candidates: int = 1
    by: str | None = None


def protocol_of(table: Experiment, rows: pd.DataFrame) -> ReferenceProtocol:
    """The protocol of an experiment's ranked runs."""
    ranked = rows[~rows["reference"].to_numpy(dtype=bool)]
    tried = recorded_runs(ranked)
    of_one_seed = tried.drop_duplicates(["method", "target", "candidate"])
    values = _values(load_cells(of_one_seed).values())
    searches = [method.search for method in table.methods if method.search and not method.reference]
    if not searches:
        return ReferenceProtocol(values)
    most = max(len(search.candidates) for search in searches)
    return ReferenceProtocol(values, most, _criterion(table, searches[0]))


def _values(cells: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The values of the protocol's settings, by path, in a fixed order."""
    flat = [dict(_settings(cell)) for cell in cells]
    paths: set[str] = set()
    for settings in flat:
        paths.update(settings)
    values = {}
    for path in sorted(paths):
        by_text = {}
        for settings in flat:
            value = settings.get(path)
            by_text[canonical_json(value)] = value
        values[path] = [by_text[text] for text in sorted(by_text)]
    return values


def _settings(cell: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The protocol's settings of a cell, by dotted path."""
    yield f"sources of {cell.get('target')}", cell.get("sources")
    for part in _PARTS:
        yield from _flat(part, cell.get(part))


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, dict) or not value:
        yield path, value
        return
    for key, inner in value.items():
        yield from _flat(f"{path}.{key}", inner)


def deviations_of(
    table: Experiment, there: Experiment, protocol: ReferenceProtocol, cells: Iterable[Mapping[str, Any]]
) -> list[str]:
    """How an experiment with these cells differs from that of a reference and its protocol."""
    return [*_differences(table, there), *_searches(table, protocol), *_strange_settings(cells, protocol)]


def _differences(table: Experiment, there: Experiment) -> Iterator[str]:
    """How an experiment differs from the reference's."""
    theirs = _about(there)
    for what, value in _about(table).items():
        if value != theirs[what]:
            yield f"{what} {value}, not {theirs[what]}"


def _about(table: Experiment) -> dict[str, object]:
    return {
        "data": table.dataset,
        "targets": ", ".join(table.targets),
        "seeds": spans(table.seeds),
        "metric": table.measure.name,
        "alpha": table.alpha,
    }


def _searches(table: Experiment, protocol: ReferenceProtocol) -> Iterator[str]:
    """The methods with more candidates than the reference's, or selected by another criterion."""
    for method in table.methods:
        if method.search is None or method.reference:
            continue
        candidates = len(method.search.candidates)
        if candidates > protocol.candidates:
            yield f"{method.name} has {candidates} candidates, more than {protocol.candidates}"
        by = _criterion(table, method.search)
        if protocol.by not in {None, by}:
            yield f"{method.name} is selected by {by}, not {protocol.by}"


def _strange_settings(cells: Iterable[Mapping[str, Any]], protocol: ReferenceProtocol) -> Iterator[str]:
    """The settings that no ranked run of the protocol has, except for how a method updates its weights."""
    strange: dict[str, dict[str, None]] = {}
    for cell in cells:
        settings = dict(_settings(cell))
        for path in dict.fromkeys((*settings, *protocol.values)):
            value = settings.get(path)
            if value not in protocol.values.get(path, [None]) and not path.startswith(_OWN):
                strange.setdefault(path, {})[_shown(value)] = None
    for path, values in strange.items():
        ranked = map(_shown, protocol.values.get(path, [None]))
        yield f"{path} {' and '.join(values)}, not {' or '.join(ranked)}"


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return canonical_json(value)[:200]
    if value is None:
        return "none"
    if isinstance(value, str):
        value = value[:12]  # of a fingerprint, enough to tell it from others
    return shown_value(value)


def _criterion(table: Experiment, search: Search) -> str:
    tuning = table.tuning
    if tuning is None:
        return search.by
    return f"{tuning.tracks[0]} on seeds {spans(tuning.seeds)}"
