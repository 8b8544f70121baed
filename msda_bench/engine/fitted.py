"""Runs of schemes that are fitted at once to all labelled examples, without a network and its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import cloudpickle  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import torch
from torch import Tensor

from msda_bench.api import Array, FittedScheme, Fitting, Inputs, PluginError, Task
from msda_bench.component.parts import task_loss
from msda_bench.engine.fit import Trained
from msda_bench.engine.runs import Run, Seen
from msda_bench.engine.settings import seed_of
from msda_bench.engine.tensors import Examples, dense, take, whole
from msda_bench.functional import SparseRows

_SEEDS = 2**32


@dataclass(frozen=True, eq=False)
class FittedModel:
    """What a `FittedScheme` has fitted, without the training data; it can be pickled.

    Attributes:
        scheme: the scheme.
        task: the task.
        predict: inputs to outputs, as the scheme gave it.
    """

    scheme: FittedScheme
    task: Task
    predict: Callable[[Inputs], Array]

    def __getstate__(self) -> dict[str, Any]:
        """Pickles the function by value: it may be a closure, or of a file of the user's that is no module."""
        return {**vars(self), "predict": cloudpickle.dumps(self.predict)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Reads what `__getstate__` wrote; whoever unpickles this runs its code in any case."""
        vars(self).update(state | {"predict": cloudpickle.loads(state["predict"])})

    def inputs(self, examples: Examples) -> Inputs:
        """Examples as a scheme gets them: without their numbers, which may be images, if it does not look at them."""
        return plain(examples) if self.scheme.looks else np.empty((len(examples), 0), np.float32)

    def outputs(self, examples: Examples) -> Tensor:
        """The outputs (n, task.outputs) float32, on the CPU.

        Raises:
            PluginError: they have another shape, or are no floats.
        """
        outputs = np.asarray(self.predict(self.inputs(examples)))
        wanted = len(examples), self.task.outputs
        if outputs.shape != wanted or outputs.dtype.kind != "f":
            raise PluginError(
                f"scheme {self.scheme.name!r} predicted {outputs.dtype} of shape {outputs.shape}; the contract asks "
                f"for floats of shape {wanted}"
            )
        return torch.from_numpy(outputs.astype(np.float32))


class Fitted:
    """The model of one run of a `FittedScheme`.

    Raises:
        PluginError: the model breaks its contract.
    """

    def __init__(self, run: Run) -> None:
        scheme, task = cast("FittedScheme", run.components.scheme), run.prepared.task
        self._device = run.data.y.device
        self._x, self._y = take(run.data.x, run.labelled_rows), run.data.y[run.labelled_rows]
        seed = seed_of(run.cell, "fit") % _SEEDS
        self._run = run
        sizes = torch.tensor([sum(size) for size in run.sizes])
        self._group_of = torch.arange(len(sizes)).repeat_interleave(sizes)
        target = run.target_rows if run.components.draws_target else run.target_rows[:0]
        y, groups = self._y.cpu().numpy(), self._group_of.numpy()
        unfitted = FittedModel(scheme, task, _unfitted)
        rows = Fitting(unfitted.inputs(self._x), y, groups, unfitted.inputs(take(run.data.x, target)))
        self.model = replace(unfitted, predict=scheme.fit(rows, task, seed))

    def trained(self) -> Trained:
        """What a record holds of training: one epoch of no step, with each group's mean loss and equal weights."""
        trained = Trained(self._run)
        losses = task_loss(self.model.task)(self._outputs(self._x), self._y).cpu()
        risks = torch.stack([losses[self._group_of == group].mean() for group in range(len(self._run.groups))]).double()
        seen = torch.stack([risks, torch.zeros_like(risks), torch.full_like(risks, 1 / len(risks))]).unsqueeze(0)
        trained.close_epoch(seen)
        return trained

    def weights(self, place: int) -> dict[str, Tensor]:  # noqa: ARG002 - there is one run
        """None: there is no network."""
        return {}

    def apply(self, examples: Sequence[Examples]) -> list[Seen]:
        """The inputs, as features, and the outputs of all examples; a list of one for the one run."""
        (given,) = examples
        outputs = self._outputs(given)
        return [Seen(dense(whole(given)).flatten(1) if self.model.scheme.looks else outputs, outputs)]

    def _outputs(self, examples: Examples) -> Tensor:
        return self.model.outputs(examples).to(self._device)


def _unfitted(_: Inputs) -> Array:
    raise PluginError("this scheme is not fitted")


def plain(examples: Examples) -> Inputs:
    """Examples as numpy arrays, read-only, or as a CSR matrix."""
    numbers = whole(examples)
    if not isinstance(numbers, SparseRows):
        rows = numbers.cpu().numpy()
        rows.flags.writeable = False
        return rows
    from scipy.sparse import csr_matrix

    parts = (part.cpu().numpy() for part in (numbers.values, numbers.columns, numbers.offsets))
    return csr_matrix(tuple(parts), (len(numbers), numbers.width))
