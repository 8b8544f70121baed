"""What a trained model is worth: the target's test result and the validators' scores."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from msda_bench.api import Parts, Task, ValidationView
from msda_bench.engine.model import Components
from msda_bench.engine.prepare import Labelled, Prepared
from msda_bench.engine.tensors import Examples, take
from msda_bench.store.record import Outcome

CHUNK = 128
"""Examples in one forward pass; larger ones leave the cache, and their memory is mapped anew each time."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Features (n, d) and outputs (n, outputs) of some examples."""

    features: Tensor
    outputs: Tensor


@torch.no_grad()
def apply(parts: Parts, examples: Examples) -> Seen:
    """Features and outputs of all examples, in chunks; the modules are in evaluation mode already."""
    device = examples.offsets.device if not isinstance(examples, Tensor) else examples.device
    features, outputs = [], []
    for start in range(0, len(examples), CHUNK):
        rows = torch.arange(start, min(start + CHUNK, len(examples)), device=device)
        found = parts.features(take(examples, rows))
        features.append(found)
        outputs.append(parts.predictor(found))
    return Seen(torch.cat(features), torch.cat(outputs))


def test_outcome(parts: Parts, task: Task, test: Labelled) -> Outcome:
    """The result on the target's test examples, as integers or a sum of squares in float64."""
    outputs = apply(parts, test.x).outputs
    if task.kind == "classification":
        correct = int((outputs.argmax(-1) == test.y).sum())
        return Outcome(n_test=len(test.y), n_correct=correct)
    errors = outputs.squeeze(-1).double() - test.y.double()
    return Outcome(n_test=len(test.y), sum_squared_error=float(errors.square().sum()))


def validation_scores(parts: Parts, components: Components, prepared: Prepared) -> dict[str, float]:
    """Each validator's score; none that is not finite."""
    if not components.validators:
        return {}
    training = prepared.training
    rows = training.rows[training.target]
    target = apply(parts, take(training.x, torch.arange(rows.start, rows.stop, device=training.y.device)))
    seen = [apply(parts, source.x) for source in prepared.held_out]
    view = ValidationView(
        task=prepared.task,
        source_features=tuple(source.features for source in seen),
        source_outputs=tuple(source.outputs for source in seen),
        source_labels=tuple(source.y for source in prepared.held_out),
        target_features=target.features,
        target_outputs=target.outputs,
    )
    scores = {validator.name: float(validator.score(view)) for validator in components.validators}
    return {name: score for name, score in scores.items() if math.isfinite(score)}
