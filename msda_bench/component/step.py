"""The arguments and results of a scheme's hooks: batches, passes, steps, phases and stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from msda_bench.functional.rows import SparseRows

Group: TypeAlias = tuple[str, ...]
"""Domains that are sampled as one."""
Examples: TypeAlias = Tensor | SparseRows
"""n examples as the network gets them: a tensor (n, ...), or rows of a sparse matrix; in a stack always a tensor."""
Carried: TypeAlias = Mapping[str, Tensor]
"""Values that a run carries from step to step besides its weights, by name."""
Right: TypeAlias = Literal["sources", "target"]
"""Data that a stage may see: labelled examples of the sources, or unlabelled ones of the target."""
_NO_ROWS = torch.empty(0, dtype=torch.int64)
_NOTHING = torch.empty(0)


class Batch(NamedTuple):
    """The examples of one step, and a key for one phase of it.

    Attributes:
        x: rows of the k labelled groups, group by group, b rows each; then of the target if it is drawn, b rows, or b /
            m if each group draws m batches (see `Parts.forward`). In a stage that may not see the sources, only rows of
            the target.
        y: (k, b) labels of the groups; (0, b) in a stage that may not see the sources.
        key: (2,) int32 random key of this phase, for a scheme's own draws (`msda_bench.functional.uniform`).
        progress: () float32, the share of the stage that is done, from 0 in its first step towards 1; for ramps. With
            one stage it is the share of the whole training.
        rows: (len(x),) int64: the place of each example within its group's training examples, or within the target's.
            It indexes values that a scheme carries for each example, such as a weight or a pseudo-label.
        carried: the carried values; see `Scheme.carry`.
    """

    x: Examples
    y: Tensor
    key: Tensor
    progress: Tensor | float = 0.0
    rows: Tensor = _NO_ROWS
    carried: Carried = {}  # noqa: RUF012 - a plain dict, as torch.vmap takes it; never modified

    @property
    def target(self) -> Examples:
        """The rows of the target; empty if it was not drawn."""
        return self.x[self.y.numel() :]

    @property
    def target_rows(self) -> Tensor:
        """The `rows` of the target: places within its training examples, as in `TargetPass`."""
        return self.rows[self.y.numel() :]


class Pass(NamedTuple):
    """One concatenated forward pass.

    Attributes:
        source: (k, b, d) features of the labelled groups.
        target: (b, d) features of the target; None if it was not drawn. If each group draws m batches, the target's one
            batch is repeated m times.
        risks: (k,) mean task loss of each group.
    """

    source: Tensor
    target: Tensor | None
    risks: Tensor


class TargetPass(NamedTuple):
    """One pass over all training examples of the target, unlabelled, in evaluation mode, without gradients.

    Attributes:
        features: (n, d) float32, from `Scheme.predict`.
        outputs: (n, outputs) float32, from `Scheme.predict`.
        key: (2,) int32 random key of this pass.
        progress: () float32, the share of the stage that is done.
    """

    features: Tensor
    outputs: Tensor
    key: Tensor
    progress: Tensor | float = 0.0


class SourcePass(NamedTuple):
    """One pass over all labelled training examples, in evaluation mode, without gradients.

    Attributes:
        features: (n, d) float32, from `Scheme.predict`.
        outputs: (n, outputs) float32, from `Scheme.predict`.
        y: (n,) labels.
        groups: (n,) int64, the place of each example's group among the labelled groups.
        key: (2,) int32 random key of this pass.
    """

    features: Tensor
    outputs: Tensor
    y: Tensor
    groups: Tensor
    key: Tensor


class Sizes(NamedTuple):
    """The sizes of a run, from which to make tensors.

    Attributes:
        groups: training examples of each labelled group, k numbers.
        target: training examples of the target.
        features: width of the network's features.
        outputs: width of its outputs: the classes, or 1.
    """

    groups: tuple[int, ...]
    target: int
    features: int
    outputs: int


class Step(NamedTuple):
    """What a scheme's step returns.

    Only the objective is needed. Whatever else is left out, or is empty, (0,), stays as it was after the phase before:
    at first risks and gaps are 0, and weights are equal. A run counts as diverged when a risk, gap or weight is not
    finite, so a scheme that has risks should give them.

    Attributes:
        objective: (), minimised by the phase.
        risks: (k,) for the record, like gaps and weights.
        gaps: (k,).
        weights: (k,) on the simplex.
        state: of the aggregator; needed if the scheme calls `parts.aggregate`.
        carried: new carried values, by name; the others do not change. Without gradients.
    """

    objective: Tensor
    risks: Tensor = _NOTHING
    gaps: Tensor = _NOTHING
    weights: Tensor = _NOTHING
    state: Tensor = _NOTHING
    carried: Carried = {}  # noqa: RUF012 - as in Batch


@dataclass(frozen=True)
class Phase:
    """A part of a step with its own objective; it trains only the named parts."""

    name: str
    trains: tuple[str, ...] = ("features", "predictor", "critic")


@dataclass(frozen=True)
class Stage:
    """A part of a run's training, with the data that it may see.

    The engine draws for a stage only the data that it may see, and the record names the stages if there are several.
    Weights, and the state of optimisers and aggregator, pass from one stage to the next; carried values do not: each
    stage makes new ones. A suite whose `training.stages` names a stage starts it with new optimisers.

    Attributes:
        name: shown in the record; unique among the stages of a scheme.
        share: its share of the run's steps, relative to those of the other stages.
        sees: "sources", labelled examples of the sources; "target", unlabelled ones of the target.
        phases: of each of its steps, in order; they may repeat. All phases of a step see the same examples; each draws
            new dropout masks and has its own `Batch.key`. Phases of a scheme that train different parts have different
            names.

    Raises:
        ValueError: it has no share or no phase, or sees unknown data.
    """

    name: str
    share: float = 1.0
    sees: tuple[Right, ...] = ("sources", "target")
    phases: tuple[Phase, ...] = (Phase("all"),)

    def __post_init__(self) -> None:
        if not self.share > 0 or not self.phases:
            raise ValueError(f"stage {self.name!r} needs a share above 0 and a phase at least")
        if not self.sees or not set(self.sees) <= {"sources", "target"}:
            raise ValueError(f"stage {self.name!r} sees {self.sees!r}; it may see sources, target or both")
