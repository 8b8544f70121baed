"""What a scheme's hooks are given and give back: batches, passes, steps, phases and stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from msda_bench.functional.rows import SparseRows

Group: TypeAlias = tuple[str, ...]
"""Domains that are drawn from as one."""
Examples: TypeAlias = Tensor | SparseRows
"""n examples as the features get them: a tensor (n, ...), or rows of a sparse matrix; in a stack always a tensor."""
Carried: TypeAlias = Mapping[str, Tensor]
"""What a run carries from step to step beside its weights, by name."""
Right: TypeAlias = Literal["sources", "target"]
"""What a stage may see: labelled examples of the sources, or unlabelled ones of the target."""
_NO_ROWS = torch.empty(0, dtype=torch.int64)


class Batch(NamedTuple):
    """The examples of one step, and a key for one phase of it.

    Attributes:
        x: rows of the k labelled groups, group by group, b rows each; then of the target if it is drawn, b rows, or
            b / m where each group draws m batches (see `Parts.forward`). In a stage that may not see the sources, rows
            of the target alone.
        y: (k, b) labels of the groups; (0, b) in a stage that may not see the sources.
        key: (2,) int32 random key of this phase, for a scheme's own draws (`msda_bench.functional.uniform`).
        progress: () float32, how much of the stage is done, from 0 in its first step towards 1; for ramps. A scheme of
            one stage sees how much of the run's training is done.
        rows: (len(x),) int64: the place of each example within its group's training examples, or within the target's.
            A scheme looks up by it what it carries for each example, such as a weight or a pseudo-label.
        carried: what the run carries; see `Scheme.carry`.
    """

    x: Examples
    y: Tensor
    key: Tensor
    progress: Tensor | float = 0.0
    rows: Tensor = _NO_ROWS
    carried: Carried = {}  # noqa: RUF012 - a plain dict, as torch.vmap takes it; nobody writes into it

    @property
    def target(self) -> Examples:
        """The rows of the target alone; none where it was not drawn."""
        return self.x[self.y.numel() :]

    @property
    def target_rows(self) -> Tensor:
        """The `rows` of the target alone: places within its training examples, as in `TargetPass`."""
        return self.rows[self.y.numel() :]


class Pass(NamedTuple):
    """One concatenated forward pass.

    Attributes:
        source: (k, b, d) features of the labelled groups.
        target: (b, d) features of the target; None when it was not drawn. Where each group draws m batches, the
            target's one batch m times over.
        risks: (k,) mean task loss of each group.
    """

    source: Tensor
    target: Tensor | None
    risks: Tensor


class TargetPass(NamedTuple):
    """One pass over all training examples of the target, unlabelled, in evaluation mode, without gradients.

    Attributes:
        features: (n, d) float32, as `Scheme.predict` gives them.
        outputs: (n, outputs) float32, as `Scheme.predict` gives them.
        key: (2,) int32 random key of this pass.
        progress: () float32, how much of the stage is done.
    """

    features: Tensor
    outputs: Tensor
    key: Tensor
    progress: Tensor | float = 0.0


class Sizes(NamedTuple):
    """How much a run has of everything, to make tensors of.

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

    Attributes:
        objective: () what the phase minimises.
        risks: (k,) for the record, as gaps and weights are. In a stage that may not see the sources each of the three
            may be empty, (0,); the record then repeats its last value.
        gaps: (k,).
        weights: (k,) on the simplex.
        state: the aggregator's.
        carried: new values of what the run carries, by name; what is not named stays. Without gradients.
    """

    objective: Tensor
    risks: Tensor
    gaps: Tensor
    weights: Tensor
    state: Tensor
    carried: Carried = {}  # noqa: RUF012 - as in Batch


@dataclass(frozen=True)
class Phase:
    """A part of a step with its own objective, which trains only the named parts."""

    name: str
    trains: tuple[str, ...] = ("features", "predictor", "critic")


@dataclass(frozen=True)
class Stage:
    """A part of a run's training, with the data that it may see.

    The engine draws for a stage what it may see and nothing else, and the record names a scheme's stages where there
    are several. Weights, and the state of optimisers and aggregator, pass from one stage to the next; what a scheme
    carries does not: each stage makes it anew.

    Attributes:
        name: shown in the record; no two stages of a scheme share one.
        share: its share of the run's steps, relative to those of the other stages.
        sees: "sources", labelled examples of the sources; "target", unlabelled ones of the target.
        phases: of each of its steps. Two phases of a scheme that train different parts have different names.

    Raises:
        ValueError: it has no share, no phase or sees nothing that there is.
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
