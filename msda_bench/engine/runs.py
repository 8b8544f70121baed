"""One run as the training core handles it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import torch
from torch import Tensor

from msda_bench.api import Files, Group, PluginError, Scheme
from msda_bench.data.files import LocalFiles
from msda_bench.engine.model import Components
from msda_bench.engine.prepared import Prepared, TrainingData
from msda_bench.suite.protocol import Splitting, batches_of, labelled_groups
from msda_bench.suite.run_spec import RunSpec


@dataclass(frozen=True, eq=False)
class Predictions:
    """Features (n, d) and outputs (n, outputs) of some examples, float32."""

    features: Tensor
    outputs: Tensor


@dataclass(frozen=True, eq=False)
class Run:
    """A cell with its components and the data of its split; `files` have the weights of its backbone."""

    cell: RunSpec
    components: Components
    prepared: Prepared
    files: Files = field(default_factory=LocalFiles)

    @property
    def scheme(self) -> Scheme:
        """The scheme of a run that takes steps."""
        return cast("Scheme", self.components.scheme)

    @cached_property
    def data(self) -> TrainingData:
        """The data that training may see."""
        return self.prepared.training_for(self.components.scheme, self.cell)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The labelled groups."""
        return self._groups(self.cell.split_sources)

    @cached_property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """For each group, the number of training examples in each of its domains."""
        return self._sizes(self.groups)

    @cached_property
    def batch(self) -> int:
        """Examples in a batch."""
        return self._batch(self.sizes)

    @cached_property
    def batches(self) -> int:
        """Batches that each labelled group draws in a step; the target draws one.

        Raises:
            PluginError: the scheme's groups cannot see equally many examples.
        """
        training = self.cell.training
        scheme = self.cell.scheme
        if training.epoch == "scheme" or training.batch == "all":
            return 1
        try:
            return batches_of(self.groups, len(self.cell.sources))
        except ValueError as error:
            raise PluginError(f"scheme {scheme.name!r} of {scheme.distribution}: {error}") from None

    @cached_property
    def steps(self) -> int:
        """Steps in an epoch; split sources do not change them, so that no method trains for longer."""
        training = self.cell.training
        if training.steps and training.epochs is not None:
            return training.steps
        if training.epoch == "equal":
            largest = max(len(self.prepared.training.rows[source]) for source in self.cell.sources)
            return 1 if training.batch == "all" else max(1, largest // training.batch)
        sizes = self._sizes(self._groups(None))
        return self.scheme.steps(sizes, self._batch(sizes))

    @property
    def all_steps(self) -> int:
        """Steps of the whole run; the last epoch may have fewer than the others."""
        training = self.cell.training
        return (training.steps or 1) if training.epochs is None else training.epochs * self.steps

    @cached_property
    def labelled_rows(self) -> Tensor:
        """The rows of the labelled groups' training examples, group by group."""
        return torch.cat([self.data.rows[domain] for group in self.groups for domain in group])

    @cached_property
    def target_rows(self) -> Tensor:
        """The rows of the target's training examples."""
        return self.data.rows[self.cell.target]

    def of_steps(self, steps: int) -> Run:
        """The same run, cut to one epoch of some steps."""
        training = self.cell.training.model_copy(update={"epochs": 1, "steps": steps})
        return Run(
            replace(self.cell, training=training),
            self.components,
            self.prepared,
            self.files,
        )

    def _batch(self, sizes: tuple[tuple[int, ...], ...]) -> int:
        batch = self.cell.training.batch
        return max(map(sum, sizes)) if batch == "all" else batch

    def _groups(self, splitting: Splitting | None) -> tuple[Group, ...]:
        cell = self.cell
        return labelled_groups(
            self.components.scheme,
            cell.sources,
            cell.target,
            splitting,
            cell.labelled_target,
        )

    def _sizes(self, groups: tuple[Group, ...]) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(len(self.data.rows[domain]) for domain in group) for group in groups)
