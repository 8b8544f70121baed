"""The data of one split as runs may see them; contains the label firewall.

A split is a (dataset, target, seed). What training may see, `TrainingData`, holds no label of the target unless the
scheme asks for them by name, or the cell for some of them; test labels are reached only through `Prepared.test`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import Array, DataError, Inputs, SchemeBase, Task, Validator
from msda_bench.component.sizes import HOLD_OUT, trained_of
from msda_bench.engine.parts import part_rows
from msda_bench.engine.picker import Labelled
from msda_bench.engine.tensors import (
    Examples,
    Unit,
    as_examples,
    as_labels,
    gathered,
    no_labels,
    take,
)
from msda_bench.suite.protocol import labelled_part
from msda_bench.suite.run_spec import RunSpec


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The data that training sees.

    Attributes:
        x: training examples of the sources in order, then of the target.
        y: their labels; hidden ones are -1 or NaN, which no loss accepts.
        rows: the rows of each domain, and of each part of a source, in `x`; (n,) int64 each.
        target: the target's name.
    """

    x: Examples
    y: Tensor
    rows: Mapping[str, Tensor]
    target: str

    @classmethod
    def of(
        cls,
        task: Task,
        sizes: Mapping[str, int],
        examples: Iterable[Examples],
        labels: Sequence[Tensor],
        device: torch.device,
    ) -> TrainingData:
        """The data of domains of these sizes, the target last, from all their examples and the sources' labels."""
        total = sum(sizes.values())
        rows = torch.split(torch.arange(total, device=device), list(sizes.values()))
        target, count = list(sizes.items())[-1]
        y = torch.cat([*labels, no_labels(task, count, device)])
        return cls(gathered(examples, total), y, dict(zip(sizes, rows, strict=True)), target)


@dataclass(frozen=True, eq=False)
class Prepared:
    """One split's data on the device.

    Attributes:
        task: the task.
        bags: whether examples are bags of words.
        training: the data that every honest method sees.
        held_out: source examples for validators; empty if a source has none.
        test: the target's test examples.
        unit: of the labels in training and held out; None if they are the user's own. Those of the test always are.
        test_rows: (n,) int64: the rows of the test examples among all of the target's domain.
        predictions: (n, outputs) of the test examples that come with the data, or None.
        tested_in_training: whether the test examples are the target's training examples (transductive protocol).
    """

    task: Task
    bags: bool
    tested_in_training: bool
    training: TrainingData
    held_out: tuple[Labelled, ...]
    test: Labelled
    _target_labels: Tensor = field(repr=False)
    _groups: Mapping[str, Array] = field(default_factory=dict, repr=False)
    predictions: Tensor | None = None
    unit: Unit | None = None
    test_rows: Array = field(default_factory=partial(np.zeros, 0, np.int64))
    _exhausted: tuple[str, ...] = ()
    # Made on first use, and kept for the other cells of the split.
    _parts: dict[object, Mapping[str, Tensor]] = field(default_factory=dict, repr=False)

    @classmethod
    def of_arrays(
        cls,
        task: Task,
        sources: Mapping[str, tuple[Inputs, Array]],
        name: str,
        target: Inputs,
        device: torch.device,
        *,
        standardise: bool = False,
    ) -> Prepared:
        """A split that trains on every row of these arrays, and tests none; the target has no labels."""
        unit = Unit.of(np.concatenate([y for _, y in sources.values()])) if standardise else None
        parts = {source: as_examples(x, device) for source, (x, _) in sources.items()}
        parts[name] = as_examples(target, device)
        sizes = {domain: len(part) for domain, part in parts.items()}
        labels = [as_labels(task, y, device, unit) for _, y in sources.values()]
        none = no_labels(task, sizes[name], device)
        return cls(
            task=task,
            bags=not isinstance(target, np.ndarray),
            training=TrainingData.of(task, sizes, parts.values(), labels, device),
            held_out=(),
            test=Labelled(parts[name][:0], none[:0]),
            tested_in_training=False,
            unit=unit,
            _target_labels=none,
        )

    def check_validators(self, validators: Iterable[Validator], cell: RunSpec) -> None:
        """Refuses validators that need held-out examples of the sources if a source has none.

        Raises:
            DataError: one line that names the validators and the source.
        """
        needing = [validator.name for validator in validators if validator.needs_sources]
        if needing and self._exhausted:
            names = ", ".join(needing)
            what = f"{names} needs held-out examples of the sources, and none of {self._exhausted[0]!r} are left"
            raise DataError(f"dataset {cell.dataset.name}: {what}; {HOLD_OUT}")

    def training_for(self, scheme: SchemeBase, cell: RunSpec) -> TrainingData:
        """The training data of a cell of this split, with the parts of its sources if the cell splits them.

        It includes the target's labels only for a scheme that declares `needs_target_labels`, or as many as the cell's
        `labelled_target` asks for. Those are the labels of the first examples, which are in random order and also stay
        among the unlabelled ones. What a scheme holds out to be scored on is in none of its rows, nor are the sources'
        examples of the same groups.

        Raises:
            DataError: the target has fewer examples than labels asked for, or their labels are those of the test.
        """
        seen = self.training
        rows = {**seen.rows, **self._part_rows(cell)}
        target = seen.rows[seen.target]
        labels, held_out = self.labelled(scheme)
        labels = labels or cell.labelled_target
        if not labels:
            return replace(seen, rows=rows)
        if self.tested_in_training:
            raise DataError(f"{cell.target}: no method may see labels of the test; use `protocol: held_out`")
        if labels > len(target):
            raise DataError(f"{cell.target}: labelled_target is {labels}, but it trains on {len(target)} examples")
        if len(held_out):
            unseen = self._unseen(labels, held_out)
            rows = {name: mine[~unseen[mine]] for name, mine in rows.items()}
            lacking = [name for name, mine in rows.items() if not len(mine)]
            if lacking:
                what = f"scheme {scheme.name!r} holds out {scheme.target_holdout:g}, with all groups of {lacking[0]!r}"
                raise DataError(f"{cell.target}: {what}; set a smaller `hold_out`")
        rows[labelled_part(cell.target)] = target[:labels]
        y = seen.y.clone()
        y[target[:labels]] = self._target_labels[:labels]
        return replace(seen, y=y, rows=rows)

    def labelled(self, scheme: SchemeBase) -> tuple[int, Tensor]:
        """How many of the target's training examples give an oracle their labels, and which of the others score it.

        It learns from the first ones. The others score it, except those in groups that it learns from.

        Returns:
            The number, and (m,) int64 places among the target's training examples; 0 and none for an honest scheme.

        Raises:
            DataError: it holds examples out, and none are left to learn from or to be scored on.
        """
        count = len(self._target_labels) if scheme.needs_target_labels else 0
        kept = trained_of(count, scheme.target_holdout)
        groups = self._groups.get(self.training.target)
        places = torch.arange(kept, count, device=self._target_labels.device)
        if groups is not None:
            is_new = ~np.isin(groups[kept:count], groups[:kept])
            places = places[torch.from_numpy(is_new)]
        if count and scheme.target_holdout and not (kept and len(places)):
            what = f"scheme {scheme.name!r} holds out {scheme.target_holdout:g} of {count} labelled examples"
            raise DataError(f"{self.training.target}: {what}, which leaves none on one side; set another `hold_out`")
        return kept, places

    def labels_of(self, places: Tensor) -> Tensor:
        """The user's labels of some of the target's training examples; asked for those that score an oracle."""
        return self.restored(self._target_labels[places])

    def restored(self, outputs: Tensor) -> Tensor:
        """A model's predictions (or labels in training) in the user's unit."""
        return outputs if self.unit is None else self.unit.restored(outputs)

    def moved(self, outputs: Tensor) -> Tensor:
        """A copy of them in the user's unit but for their mean, so that float32 holds them: what validators see."""
        return outputs.clone() if self.unit is None else outputs * self.unit.deviation

    def _unseen(self, kept: int, held_out: Tensor) -> Tensor:
        """A mask of `training.x`: the target's examples after the first ones, and the sources' of groups held out."""
        rows = self.training.rows
        target = self.training.target
        unseen = torch.zeros_like(self.training.y, dtype=torch.bool)
        unseen[rows[target][kept:]] = True
        if target not in self._groups:
            return unseen
        groups = self._groups[target][held_out.cpu().numpy()]
        for name in self._groups.keys() - {target}:
            shared = np.isin(self._groups[name], groups)
            unseen[rows[name][torch.from_numpy(shared).to(unseen.device)]] = True
        return unseen

    def _part_rows(self, cell: RunSpec) -> Mapping[str, Tensor]:
        splitting = cell.split_sources
        if splitting is None:
            return {}
        identity = (splitting, cell.training.batch)
        if identity not in self._parts:
            smallest = 1 if cell.training.batch == "all" else cell.training.batch
            least = splitting.clusters * smallest
            sources: dict[str, tuple[Examples, Tensor]] = {}
            for source in cell.sources:
                rows = self.training.rows[source]
                if len(rows) < least:
                    what = f"split_sources needs {least} training examples of {source!r}, which has {len(rows)}"
                    raise DataError(f"dataset {cell.dataset.name}: {what}; set a larger `train` or fewer clusters")
                sources[source] = (take(self.training.x, rows), rows)
            self._parts[identity] = part_rows(cell, splitting, sources, bags=self.bags)
        return self._parts[identity]
