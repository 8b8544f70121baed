"""What a trained model is worth: the target's test result and the validators' scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from msda_bench.api import Parts, Task, ValidationView, Validator
from msda_bench.engine.model import Components
from msda_bench.engine.prepare import Labelled, Prepared
from msda_bench.engine.tensors import Examples, take
from msda_bench.store.record import Outcome

CHUNK = 256
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


def test_outcome(parts: Parts, task: Task, test: Labelled) -> Outcome | None:
    """The result on the target's test examples, as integers or a sum of squares; None if an output is not finite."""
    outputs = apply(parts, test.x).outputs
    if not bool(outputs.isfinite().all()):
        return None
    if task.kind == "classification":
        correct = int((outputs.argmax(-1) == test.y).sum())
        return Outcome(n_test=len(test.y), n_correct=correct)
    errors = outputs.squeeze(-1).double() - test.y.double()
    return Outcome(n_test=len(test.y), sum_squared_error=float(errors.square().sum()))


@dataclass(frozen=True)
class Scores:
    """Each validator's score, and one line for each validator that gave none."""

    by_name: dict[str, float] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


def validation_scores(parts: Parts, components: Components, prepared: Prepared) -> Scores:
    """The validators' scores; one that raises, or is not finite, costs the run no more than itself."""
    if not components.validators:
        return Scores()
    view = _view(parts, prepared)
    found = {validator.name: _score(validator, view) for validator in components.validators}
    scores = {name: score for name, score in found.items() if isinstance(score, float)}
    faults = tuple(f"validator {name!r} {fault}" for name, fault in found.items() if isinstance(fault, str))
    return Scores(scores, faults)


def _score(validator: Validator, view: ValidationView) -> float | str:
    try:
        score = float(validator.score(view))
    except Exception as error:  # noqa: BLE001 - a stranger's validator may raise anything
        return f"raised {type(error).__name__}: {' '.join(str(error).split())}"
    return score if math.isfinite(score) else f"gave {score}"


def _view(parts: Parts, prepared: Prepared) -> ValidationView:
    training = prepared.training
    rows = training.rows[training.target]
    target = apply(parts, take(training.x, torch.arange(rows.start, rows.stop, device=training.y.device)))
    seen = [apply(parts, source.x) for source in prepared.held_out]
    return ValidationView(
        task=prepared.task,
        source_features=tuple(source.features for source in seen),
        source_outputs=tuple(source.outputs for source in seen),
        source_labels=tuple(source.y for source in prepared.held_out),
        target_features=target.features,
        target_outputs=target.outputs,
    )
