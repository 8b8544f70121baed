"""Asks datasets for the worth of their sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msda_bench.api import Component, KnowsRelatedness
from msda_bench.blame import blaming
from msda_bench.errors import BenchError, PluginError
from msda_bench.plugins import Registry
from msda_bench.suite.cell import canonical_json


class Worth:
    """The worth of sources by dataset and target; caches answers, and notes why there are none."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[tuple[str, str], Mapping[str, float]] = {}
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """A line for each dataset that could not answer."""
        return tuple(self._notes)

    def of(self, dataset: Mapping[str, Any], target: str) -> Mapping[str, float]:
        """The worth by source, in percent; empty if the dataset does not know it or fails.

        Args:
            dataset: the dataset of a record's cell: its name, version and parameters.
            target: the target domain.
        """
        identity = (canonical_json(dict(dataset)), target)
        if identity not in self._known:
            self._known[identity] = self._ask(dataset, target)
        return self._known[identity]

    def _ask(self, dataset: Mapping[str, Any], target: str) -> Mapping[str, float]:
        try:
            with blaming(()):
                component = self._component(dataset)
                return dict(component.relatedness(target)) if isinstance(component, KnowsRelatedness) else {}
        except BenchError as error:
            self._notes[f"the worth of the sources of {dataset['name']} is unknown: {error.lines[0]}"] = None
            return {}

    def _component(self, dataset: Mapping[str, Any]) -> Component:
        entry, version = self._registry.entry("dataset", dataset["name"]), dataset["version"]
        if entry.cls.version != version:
            raise PluginError(f"version {entry.cls.version} is installed, the records have version {version}")
        return entry.create(dataset["params"])
