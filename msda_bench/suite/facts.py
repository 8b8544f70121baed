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
        dataset: the dataset; `domains`, `sources` (of each domain that may be a target) and `task` are what it says.
        targets: those of the suite that the dataset has.
        wanted_sources: the only ones that the suite wants; None for all.
        labelled_target: target labels that the suite gives to every method.
        validators: those that the suite names; `validator_names` has the default one where it names none.
    """

    parts: Mapping[str, Any]
    dataset: Configured[Dataset]
    domains: tuple[str, ...]
    sources: Mapping[str, tuple[str, ...]]
    task: Task
    input: InputSpec
    methods: Mapping[str, MethodSpec]
    backbone: Configured[Backbone] | None
    training: Protocol | None
    select: SelectSpec | None
    split_sources: SplitSpec | None
    labelled_target: int
    targets: tuple[str, ...]
    wanted_sources: tuple[str, ...] | None
    validators: list[Configured[Validator]]

    @classmethod
    def of(cls, parts: Mapping[str, Any]) -> Facts:
        """Asks the dataset; raises whatever it raises, also where only later parts of a run would ask."""
        configured: Configured[Dataset] = parts["dataset"]
        dataset = configured.component
        sources = {target: tuple(dataset.sources(target)) for target in dataset.targets}
        dataset.fingerprint()
        "".join(dataset.notes)
        tuple(dataset.files)
        return cls(
            parts=parts,
            dataset=configured,
            domains=tuple(dataset.domains),
            sources=sources,
            task=dataset.task,
            input=dataset.input,
            methods=parts.get("methods") or {},
            backbone=parts.get("backbone"),
            training=parts.get("training"),
            select=parts.get("select"),
            split_sources=parts.get("split_sources"),
            labelled_target=parts.get("labelled_target") or 0,
            targets=tuple(target for target in parts.get("targets") or sources if target in sources),
            wanted_sources=parts.get("sources"),
            validators=parts.get("validators") or [],
        )

    @property
    def validator_names(self) -> list[str]:
        """Names of the validators, or of the task's default one."""
        listed = [validator.name for validator in self.validators]
        return listed if self.parts.get("validators") is not None else [DEFAULT_VALIDATOR[self.task.kind]]

    def kept_sources(self, target: str) -> tuple[str, ...]:
        """The sources of a target that the suite wants."""
        return kept_sources(self.sources[target], self.wanted_sources)

    def options(self, method: MethodSpec) -> SourceOptions:
        """What is done to a method's sources."""
        return source_options(method, self.split_sources, self.labelled_target)


def weighs_sources(method: MethodSpec) -> bool:
    """Whether two sources are two groups to a method's scheme."""
    return len(groups_of_two(method.scheme.component)) > 1
