"""Evaluates a trained model: the target's test result and the validators' scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor

from msda_bench.api import Component, SchemeBase, Task, Tested, ValidationView
from msda_bench.engine.prepared import Prepared
from msda_bench.engine.runs import Predictions
from msda_bench.engine.tensors import Examples, take
from msda_bench.errors import BenchError, describe, printable
from msda_bench.plugin_errors import cause_of, package_of, place, plugin_errors, trace_of
from msda_bench.store.record import Outcome
from msda_bench.suite.plan import TARGET_ACCURACY

_C = TypeVar("_C", bound=Component)
_SHOWN = 5
"""Classes shown in a line on many."""


def test_outcome(outputs: Tensor, task: Task, labels: Tensor) -> Outcome | None:
    """The result on the target's test examples, as counts or sums; None if an output is not finite.

    Of a target without labels it counts no example.
    """
    if not bool(outputs.isfinite().all()):
        return None
    if is_hidden(task, labels):
        return Outcome(n_test=0)
    return Outcome(n_test=len(labels), **task.rules.counted(outputs, labels))


def is_hidden(task: Task, labels: Tensor) -> bool:
    """Whether a test has no label at all."""
    return bool(task.rules.are_unknown(labels).all())


def class_notes(prepared: Prepared) -> list[str]:
    """Lines on classes that only the target's test has, or only the training examples of its sources."""
    training = prepared.training
    tested = set(prepared.test.y.tolist())
    if not prepared.task.has_classes or is_hidden(prepared.task, prepared.test.y):
        return []
    taught = set(training.y[training.y >= 0].tolist())
    classes_of = {
        "of the classes of its test no source has an example to learn from": tested - taught,
        "of the classes of its sources its test has no example, so means over classes leave them out": taught - tested,
    }
    target = printable(training.target)
    lines = []
    for what, classes in classes_of.items():
        if classes:
            lines.append(f"target {target}: {what}: {_few(classes)} (classes are counted from 0)")
    return lines


def _few(classes: set[int]) -> str:
    texts = [str(number) for number in sorted(classes)[:_SHOWN]]
    if len(classes) > _SHOWN:
        texts.append("...")
    return ", ".join(texts)


def view_of(outcome: Outcome, outputs: Tensor | None = None, labels: Tensor | None = None) -> Tested:
    """The test of a record, with its outputs (n, outputs) and labels (n,) for a metric that needs them."""
    sums = {}
    for name in ("sum_squared_error", "sum_absolute_error", "sum_labels", "sum_squared_labels"):
        value = getattr(outcome, name)
        sums[name] = math.nan if value is None else value
    return Tested(
        n=outcome.n_test,
        confusion=torch.tensor(outcome.confusion or (), dtype=torch.int64).reshape(-1, 3),
        **sums,
        outputs=torch.zeros(0, 1) if outputs is None else outputs.cpu().clone(),
        labels=torch.zeros(0) if labels is None else labels.cpu().clone(),
    )


def validation_examples(prepared: Prepared) -> list[Examples]:
    """What validators see: the target's training examples, then held-out ones of each source."""
    training = prepared.training
    target = take(training.x, training.rows[training.target])
    return [target, *(source.x for source in prepared.held_out)]


Mix: TypeAlias = Callable[[Tensor, Tensor, float], Tensor]


def target_score(prepared: Prepared, scheme: SchemeBase, target: Predictions) -> dict[str, float]:
    """The score of an oracle on the labelled examples of the target that it holds out; empty without any.

    Accuracy, or minus the mean squared error for regression; none if an output is not finite.
    """
    _, places = prepared.labelled(scheme)
    if not len(places):
        return {}
    outputs = prepared.restored(target.outputs[places])
    outcome = test_outcome(outputs, prepared.task, prepared.labels_of(places))
    if outcome is None:
        return {}
    right = outcome.n_correct
    wrong = outcome.sum_squared_error or 0.0
    score = -wrong if right is None else right
    return {TARGET_ACCURACY: score / outcome.n_test}


def scored(scoring: Sequence[_C], ask: Callable[[_C], float]) -> tuple[dict[str, float], list[tuple[str, str]]]:
    """The scores of validators or metrics; one that raises or is not finite does not affect the others.

    Returns:
        By name the scores, and for each that failed one line, and the traceback if it raised.
    """
    scores: dict[str, float] = {}
    faults: list[tuple[str, str]] = []
    for scorer in scoring:
        packages = {package_of(type(scorer))}
        try:
            with plugin_errors(packages):
                score = float(ask(scorer))
        except BenchError as fault:
            error = cause_of(fault)
            where = place(error, packages)
            at = f" at {where}" if where else ""
            what = f"{scorer.kind} {scorer.name!r}{at} raised {describe(error)}"
            faults.append((what, trace_of(error)))
            continue
        if math.isfinite(score):
            scores[scorer.name] = score
        else:
            faults.append((f"{scorer.kind} {scorer.name!r} gave {score}", ""))
    return scores, faults


def validation_view(prepared: Prepared, seen: Sequence[Predictions], mix: Mix) -> ValidationView:
    """Copies, so that a validator that writes into them affects neither another one nor the split's later cells.

    They are of what was seen of each of the `validation_examples`.
    """
    target, *sources = seen
    moved = prepared.moved
    return ValidationView(
        task=prepared.task,
        source_features=tuple(source.features.clone() for source in sources),
        source_outputs=tuple(moved(source.outputs) for source in sources),
        source_labels=tuple(moved(source.y) for source in prepared.held_out),
        target_features=target.features.clone(),
        target_outputs=moved(target.outputs),
        mix=lambda *given: moved(mix(*given)),
    )
