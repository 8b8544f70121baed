"""An experiment and the declarations of its dataset, for checks and expansion."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from msda_bench.api import Backbone, DataError, Dataset, Extent, Group, InputSpec, SchemeBase, Task
from msda_bench.component.backbone import network_input
from msda_bench.component.dataset import sizes_of
from msda_bench.component.sizes import asked, counts, holds_out, is_transductive, roles_of, trained_of
from msda_bench.errors import BenchError, PluginError
from msda_bench.plugin_errors import plugin_errors
from msda_bench.suite.choice import Configured
from msda_bench.suite.protocol import Splitting, TrainingConfig, labelled_groups
from msda_bench.suite.spec import POOLED, ExperimentFile, MethodSpec

_MISSING: dict[str, Any] = {"methods": {}, "backbone": None, "training": None}


@dataclass(frozen=True)
class ResolvedExperiment:
    """An experiment with a valid dataset; other parts with mistakes are at their default or empty.

    `sources` are those of each possible target; `targets` are those of the suite that the dataset has. `without` is the
    source that is left out of this copy of an experiment.
    """

    file: ExperimentFile
    data: Dataset
    domains: Group
    sources: Mapping[str, Group]
    targets: Group
    task: Task
    fingerprint: str
    extents: Mapping[str, Extent]
    without: str | None = None

    @classmethod
    def of(cls, sound: Mapping[str, Any]) -> ResolvedExperiment:
        """Resolves an experiment; a BenchError reports what the dataset raises."""
        file = ExperimentFile.model_construct(set(sound), **_MISSING | dict(sound))
        data = file.dataset.component
        with file.dataset.entry.plugin_errors("cannot be inspected"):
            "".join(data.notes)
            tuple(data.files)
            domains = tuple(data.domains)
            if not domains:
                raise PluginError(f"dataset {data.name!r} of {file.dataset.entry.origin} has no domains")
            sources = {target: tuple(group) for target, group in data.sources().items()}
            targets = tuple(target for target in file.targets or sources if target in sources)
            return cls(file, data, domains, sources, targets, data.task, data.fingerprint(), sizes_of(data))

    @property
    def network_input(self) -> InputSpec:
        """The input of the network; a BenchError if the backbone refuses the dataset's."""
        if self.backbone is None:
            return self.data.input
        with self.backbone.entry.plugin_errors(f"cannot be built for {self.data.name}"):
            return network_input(self.backbone.component, self.data.input)

    @property
    def baseline(self) -> str | None:
        """The method on which others should improve: the named one, or the only one that pools without adapting."""
        if self.file.compare.baseline is not None:
            return self.file.compare.baseline
        plain = [name for name, method in self.methods.items() if _is_plain(method)]
        return plain[0] if len(plain) == 1 else None

    @property
    def methods(self) -> Mapping[str, MethodSpec]:
        """The methods by name."""
        return self.file.methods

    @property
    def backbone(self) -> Configured[Backbone] | None:
        """None if it has mistakes."""
        return self.file.backbone

    @property
    def training(self) -> TrainingConfig | None:
        """None if it has mistakes."""
        return self.file.training

    @property
    def validators(self) -> tuple[str, ...]:
        """Names of the validators; by default the task's own, if examples are held out for it."""
        if self.file.validators is not None:
            return tuple(validator.name for validator in self.file.validators)
        if self._uses_all_of_a_source():
            return ()
        return (self.task.rules.validator,)

    def _uses_all_of_a_source(self) -> bool:
        """Whether nothing of some source is held out, as far as it is known."""
        with contextlib.suppress(DataError):  # training reports it
            for domain, target in self._roles:
                if domain != target and not holds_out(self.data, domain, target, self.extents.get(domain)):
                    return True
        return False

    def name_without(self, source: str) -> str:
        """The name of this experiment without a source."""
        return f"{self.file.name}-without-{source}"

    def kept_sources(self, target: str) -> Group:
        """The sources of a target that the suite uses, in the dataset's order."""
        return self._kept[target]

    @functools.cached_property
    def _kept(self) -> dict[str, Group]:
        if self.file.sources is None:
            return dict(self.sources)
        wanted = set(self.file.sources)
        return {target: tuple(filter(wanted.__contains__, group)) for target, group in self.sources.items()}

    @functools.cached_property
    def _roles(self) -> list[tuple[str, str]]:
        return roles_of((target, self.kept_sources(target)) for target in self.targets)

    def splitting(self, method: MethodSpec) -> Splitting | None:
        """How a method's sources are split; None if that changes nothing for it, so that runs are shared."""
        split = method.split_sources or self.file.split_sources
        if split is None or split.clusters == 1 or not takes_parts(method.scheme.component):
            return None
        return split

    def labelled_target(self, method: MethodSpec) -> int:
        """The number of labelled target examples that form one more source of a method."""
        if method.scheme.component.needs_target_labels:
            return 0
        return self.file.labelled_target if method.labelled_target is None else method.labelled_target

    def labels_seen(self, method: MethodSpec) -> tuple[float, str]:
        """How many labels of the target a method trains with, to sort by and in words, which are empty for none.

        They are empty for an oracle, too, which trains with all labels, unless it holds some out.
        """
        scheme = method.scheme.component
        if not (scheme.needs_target_labels and scheme.target_holdout):
            count = self.labelled_target(method)
            return count, str(count or "")
        numbers = set()
        for target in self.targets:
            trained = self._trained_on(target, target)
            if trained is None:
                return math.inf, f"{1 - scheme.target_holdout:.3g} of the"
            numbers.add(trained_of(trained, scheme.target_holdout))
        fewest, most = min(numbers), max(numbers)
        return most, str(most) if fewest == most else f"{fewest} to {most}"

    @property
    def fewest(self) -> int | None:
        """The smallest known number of training examples of a domain."""
        counts = [self._trained_on(domain, target) for domain, target in self._roles]
        return min((count for count in counts if count is not None), default=None)

    def _trained_on(self, domain: str, target: str) -> int | None:
        """The number of training examples of a domain; None if it is known only after loading, or wrong."""
        with contextlib.suppress(DataError):
            if domain in self.extents:
                return counts(self.data, domain, target, self.extents[domain])[0]
            if not (is_transductive(self.data) and domain == target):
                part = asked(self.data, domain, target)[1]
                return part if isinstance(part, int) else None
        return None


def without_each_source(experiment: ResolvedExperiment) -> Iterator[ResolvedExperiment]:
    """The experiment of `leave_out_sources` once more without each source, of the targets that have it."""
    file = experiment.file
    if not file.leave_out_sources:
        return
    for source in experiment.domains:
        targets = tuple(target for target in experiment.targets if source in experiment.kept_sources(target))
        if targets:
            others = tuple(domain for domain in file.sources or experiment.domains if domain != source)
            changed = {"name": experiment.name_without(source), "sources": others, "published": None}
            yield replace(experiment, file=file.model_copy(update=changed), targets=targets, without=source)


def _is_plain(method: MethodSpec) -> bool:
    """Whether a method pools the sources and does nothing else."""
    if method.scheme.name != POOLED or method.reference or method.labelled_target:
        return False
    return not (method.adapts or method.mu or method.standardise or method.prior_correction)


def takes_parts(scheme: SchemeBase) -> bool:
    """Whether a scheme distinguishes the parts of a source; one that pools all sources does not."""
    return _groups_of_two(scheme, Splitting(clusters=2)) != _groups_of_two(scheme)


def weighs_sources(scheme: SchemeBase) -> bool:
    """Whether two sources are two groups for a scheme."""
    return len(_groups_of_two(scheme)) > 1


def _groups_of_two(scheme: SchemeBase, splitting: Splitting | None = None) -> tuple[Group, ...]:
    """The groups of two sources; empty if the scheme raises, which training reports."""
    with contextlib.suppress(BenchError), plugin_errors(()):
        return labelled_groups(scheme, ("a", "b"), "t", splitting, 0)
    return ()
