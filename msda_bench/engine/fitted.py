"""Runs of predictors, which are fitted at once to all labelled examples, without a network and its steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import cloudpickle  # type: ignore[import-untyped, unused-ignore]
import numpy as np
import torch
from torch import Tensor

from msda_bench.api import Array, FitData, Inputs, PluginError, Predictor, Task
from msda_bench.engine.fit import TrainingResult
from msda_bench.engine.runs import Predictions, Run
from msda_bench.engine.settings import seed_of
from msda_bench.engine.tensors import Examples, all_numbers, dense, device_of, take
from msda_bench.functional import SparseRows

_SEEDS = 2**32


@dataclass(frozen=True, eq=False)
class FittedModel:
    """What a `Predictor` has fitted, without the training data; it can be pickled.

    Attributes:
        scheme: the predictor.
        task: the task.
        predict: inputs to outputs, as `Predictor.fit` gave it.
    """

    scheme: Predictor
    task: Task
    predict: Callable[[Inputs], Array]

    def __getstate__(self) -> dict[str, Any]:
        """Pickles the function by value: it may be a closure, or of a file of the user's that is no module."""
        return {**vars(self), "predict": cloudpickle.dumps(self.predict)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Reads what `__getstate__` wrote; whoever unpickles this runs its code in any case."""
        vars(self).update(state | {"predict": cloudpickle.loads(state["predict"])})

    def outputs(self, examples: Examples) -> Tensor:
        """The outputs (n, task.outputs) float32, on the CPU.

        Raises:
            PluginError: they have another shape, or are no floats.
        """
        return torch.from_numpy(self.predicted(_inputs(self.scheme, examples)).astype(np.float32))

    def predicted(self, inputs: Inputs) -> Array:
        """The outputs for inputs as the predictor gets them, in its own precision; raises as `outputs`."""
        outputs = np.asarray(self.predict(inputs))
        wanted = (inputs.shape[0], self.task.outputs)
        if outputs.shape != wanted or outputs.dtype.kind != "f":
            raise PluginError(
                f"scheme {self.scheme.name!r} predicted {outputs.dtype} of shape {outputs.shape}; the contract asks "
                f"for floats of shape {wanted}"
            )
        return outputs

    def apply(self, examples: Sequence[Examples]) -> list[Predictions]:
        """The inputs, as features, and the outputs of all examples; a list of one for the one run."""
        (given,) = examples
        outputs = self.outputs(given).to(device_of(given))
        if not self.scheme.uses_inputs:
            return [Predictions(outputs, outputs)]
        return [Predictions(dense(all_numbers(given)).flatten(1), outputs)]

    def weights(self, place: int) -> dict[str, Tensor]:  # noqa: ARG002 - there is one run
        """None: there is no network."""
        return {}


def fit_predictor(run: Run) -> tuple[FittedModel, TrainingResult]:
    """Fits the predictor of a run.

    Returns:
        The model, and what a record holds of training: one epoch without steps, with each group's mean loss and equal
        weights; nothing for a predictor that `uses_predictions`.

    Raises:
        PluginError: the model breaks its contract.
    """
    scheme = cast("Predictor", run.components.scheme)
    task = run.prepared.task
    seed = seed_of(run.cell, "fit") % _SEEDS
    result = TrainingResult(run)
    if scheme.uses_predictions:
        return FittedModel(scheme, task, scheme.fit(_no_rows(task), task, seed)), result
    x = take(run.data.x, run.labelled_rows)
    y = run.data.y[run.labelled_rows]
    sizes = torch.tensor([sum(size) for size in run.sizes])
    groups = torch.arange(len(sizes)).repeat_interleave(sizes)
    target_rows = run.target_rows
    if not run.components.draws_target:
        target_rows = target_rows[:0]
    target = take(run.data.x, target_rows)
    rows = FitData(
        _inputs(scheme, x),
        y.cpu().numpy(),
        groups.numpy(),
        _inputs(scheme, target),
    )
    model = FittedModel(scheme, task, scheme.fit(rows, task, seed))
    outputs = model.outputs(x)
    losses = task.rules.losses(outputs.to(y.device), y).cpu()
    means = [losses[groups == group].mean() for group in range(len(sizes))]
    risks = torch.stack(means).double()
    gaps = torch.zeros_like(risks)
    weights = torch.full_like(risks, 1 / len(risks))
    step = torch.stack([risks, gaps, weights])
    result.close_epoch(step.unsqueeze(0))
    return model, result


def _no_rows(task: Task) -> FitData:
    """No example, for a predictor whose inputs are other predictions."""
    no_inputs = np.empty((0, task.outputs), np.float32)
    no_numbers = np.empty(0, np.int64)
    return FitData(no_inputs, no_numbers, no_numbers, no_inputs)


def _inputs(scheme: Predictor, examples: Examples) -> Inputs:
    """Examples as the predictor gets them: without columns, which may be images, if it does not use them."""
    if not scheme.uses_inputs:
        return np.empty((len(examples), 0), np.float32)
    return as_inputs(examples)


def as_inputs(examples: Examples) -> Inputs:
    """Examples as numpy arrays, read-only, or as a CSR matrix."""
    numbers = all_numbers(examples)
    if not isinstance(numbers, SparseRows):
        rows = numbers.cpu().numpy()
        rows.flags.writeable = False
        return rows
    from scipy.sparse import csr_matrix

    values = numbers.values.cpu().numpy()
    columns = numbers.columns.cpu().numpy()
    offsets = numbers.offsets.cpu().numpy()
    return csr_matrix((values, columns, offsets), (len(numbers), numbers.width))
