"""What the checks of an experiment look at: its parts as far as they are sound, and what its dataset says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msda_bench.api import Backbone, Dataset, InputSpec, Task, Validator
from msda_bench.suite.choice import Configured
from msda_bench.suite.method import SourceOptions, groups_of_two, source_options
from msda_bench.suite.sources import kept_sources
from msda_bench.suite.spec import DEFAULT_VALIDATOR, MethodSpec, Protocol, SelectSpec, SplitSpec


@dataclass(frozen=True)
class Facts:
    """An experiment whose dataset is sound; of its other parts those with mistakes are None or empty.

    Attributes:
        parts: the sound ones, by their keys in the suite.
        dataset: the dataset.
        domains: of the dataset.
        sources: of each domain that may be a target.
        task: of the dataset.
        input: of the dataset.
    """

    parts: Mapping[str, Any]
    dataset: Configured[Dataset]
    domains: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]
    task: Task
    input: InputSpec

    @classmethod
    def of(cls, parts: Mapping[str, Any]) -> Facts:
        """Asks the dataset; raises whatever it raises, also where only later parts of a run would ask."""
        configured: Configured[Dataset] = parts["dataset"]
        dataset = configured.component
        sources = {target: tuple(dataset.sources(target)) for target in dataset.targets}
        dataset.fingerprint()
        "".join(dataset.notes)
        tuple(dataset.files)
        return cls(parts, configured, tuple(dataset.domains), sources, dataset.task, dataset.input)

    @property
    def methods(self) -> Mapping[str, MethodSpec]:
        """By name."""
        return self.parts.get("methods") or {}

    @property
    def backbone(self) -> Configured[Backbone] | None:
        """The network."""
        return self.parts.get("backbone")

    @property
    def training(self) -> Protocol | None:
        """The protocol."""
        return self.parts.get("training")

    @property
    def select(self) -> SelectSpec | None:
        """How settings are selected."""
        return self.parts.get("select")

    @property
    def split_sources(self) -> SplitSpec | None:
        """How the suite splits sources."""
        return self.parts.get("split_sources")

    @property
    def labelled_target(self) -> int:
        """Target labels that the suite gives to every method."""
        return self.parts.get("labelled_target") or 0

    @property
    def validators(self) -> list[Configured[Validator]]:
        """Those that the suite names."""
        return self.parts.get("validators") or []

    @property
    def validator_names(self) -> list[str]:
        """Names of all, with the default one where the suite names none."""
        listed = self.parts.get("validators")
        return [DEFAULT_VALIDATOR[self.task.kind]] if listed is None else [one.name for one in listed]

    @property
    def targets(self) -> tuple[str, ...]:
        """Those of the suite that the dataset has."""
        return tuple(target for target in self.parts.get("targets") or self.sources if target in self.sources)

    @property
    def wanted_sources(self) -> tuple[str, ...] | None:
        """The only sources that the suite wants; None for all."""
        return self.parts.get("sources")

    def kept_sources(self, target: str) -> tuple[str, ...]:
        """The sources of a target that the suite wants."""
        return kept_sources(self.sources[target], self.wanted_sources)

    def options(self, method: MethodSpec) -> SourceOptions:
        """What is done to a method's sources."""
        return source_options(method, self.split_sources, self.labelled_target)


def weighs_sources(method: MethodSpec) -> bool:
    """Whether two sources are two groups to a method's scheme."""
    return len(groups_of_two(method.scheme.component)) > 1
