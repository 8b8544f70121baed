"""What a trained model is worth: the target's test result and the validators' scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from msda_bench.api import Task, ValidationView, Validator
from msda_bench.engine.prepare import Prepared
from msda_bench.engine.runs import Seen
from msda_bench.engine.tensors import Examples, take
from msda_bench.errors import describe, pass_interrupt
from msda_bench.store.record import Outcome


def test_outcome(outputs: Tensor, task: Task, labels: Tensor) -> Outcome | None:
    """The result on the target's test examples, as integers or a sum of squares; None if an output is not finite."""
    if not bool(outputs.isfinite().all()):
        return None
    if task.kind == "classification":
        correct = int((outputs.argmax(-1) == labels).sum())
        return Outcome(n_test=len(labels), n_correct=correct)
    errors = outputs.squeeze(-1).double() - labels.double()
    return Outcome(n_test=len(labels), sum_squared_error=float(errors.square().sum()))


@dataclass(frozen=True)
class Scores:
    """Each validator's score, and one line for each validator that gave none."""

    by_name: dict[str, float] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


def validation_examples(prepared: Prepared) -> list[Examples]:
    """What validators look at: the target's training examples, then held-out ones of each source."""
    training = prepared.training
    target = take(training.x, training.rows[training.target])
    return [target, *(source.x for source in prepared.held_out)]


def validation_scores(validators: Sequence[Validator], prepared: Prepared, seen: Sequence[Seen]) -> Scores:
    """The validators' scores; one that raises, or is not finite, costs the run no more than itself.

    Args:
        validators: the validators.
        prepared: the data of the split.
        seen: of each of the `validation_examples`.
    """
    found = {validator.name: _score(validator, _view(prepared, seen)) for validator in validators}
    scores = {name: score for name, score in found.items() if isinstance(score, float)}
    faults = tuple(f"validator {name!r} {fault}" for name, fault in found.items() if isinstance(fault, str))
    return Scores(scores, faults)


def _score(validator: Validator, view: ValidationView) -> float | str:
    try:
        score = float(validator.score(view))
    except BaseException as error:  # noqa: BLE001 - a stranger's validator may raise anything
        pass_interrupt(error)
        return f"raised {describe(error)}"
    return score if math.isfinite(score) else f"gave {score}"


def _view(prepared: Prepared, seen: Sequence[Seen]) -> ValidationView:
    """Copies, so that a validator that writes into them harms neither another one nor the split's later cells."""
    target, *sources = seen
    return ValidationView(
        task=prepared.task,
        source_features=tuple(source.features.clone() for source in sources),
        source_outputs=tuple(source.outputs.clone() for source in sources),
        source_labels=tuple(source.y.clone() for source in prepared.held_out),
        target_features=target.features.clone(),
        target_outputs=target.outputs.clone(),
    )
