"""Asks a dataset what its sources are worth, where it knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from msda_bench.api import Component, Dataset
from msda_bench.errors import PluginError, describe, pass_interrupt, printable
from msda_bench.plugins import Registry
from msda_bench.suite.cell import canonical_json


class Worth:
    """What sources are worth, by dataset and target; keeps answers, and why there are none."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[tuple[str, str], Mapping[str, float]] = {}
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """A line for each dataset that could not be asked."""
        return tuple(self._notes)

    def of(self, dataset: Mapping[str, Any], target: str) -> Mapping[str, float]:
        """By source, in percent; nothing where the dataset does not know, or cannot be asked.

        Args:
            dataset: as a record's cell has it, with its name, version and parameters.
            target: the target domain.
        """
        identity = (canonical_json(dict(dataset)), target)
        if identity not in self._known:
            self._known[identity] = self._ask(dataset, target)
        return self._known[identity]

    def _ask(self, dataset: Mapping[str, Any], target: str) -> Mapping[str, float]:
        try:
            component = self._component(dataset)
            return dict(component.relatedness(target)) if isinstance(component, Dataset) else {}
        except BaseException as error:  # noqa: BLE001 - a stranger's dataset may raise anything
            pass_interrupt(error)
            known = type(error) in (PluginError, ValidationError)
            why = printable(str(error).partition("\n")[0]) if known else describe(error)
            self._notes[f"what the sources of {dataset['name']} are worth cannot be asked: {why}"] = None
            return {}

    def _component(self, dataset: Mapping[str, Any]) -> Component:
        entry, version = self._registry.entry("dataset", dataset["name"]), dataset["version"]
        if entry.cls.version != version:
            raise PluginError(f"it is of version {entry.cls.version} here, and was of version {version}")
        return entry.create(dataset["params"])
