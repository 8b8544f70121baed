"""Evaluates trained runs for their records, and for the files that a suite keeps beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msda_bench.api import DataError
from msda_bench.engine.evaluate import (
    Mix,
    metric_values,
    target_score,
    test_outcome,
    validation_examples,
    validation_scores,
)
from msda_bench.engine.fit import Trained
from msda_bench.engine.label_shift import correction
from msda_bench.engine.program import Judgeable
from msda_bench.engine.runs import Run, Seen
from msda_bench.engine.tensors import batch_of, chunk, dense
from msda_bench.store.arrays import pack
from msda_bench.store.record import Outcome


def kept_arrays(run: Run, test: Seen, weights: Callable[[], Mapping[str, Tensor]]) -> dict[str, bytes]:
    """The files that the run's cell asks for, by name; predictions are of the test."""
    packed: dict[str, bytes] = {}
    labels = _plain(run.prepared.test.y)
    for name in run.cell.keep:
        if name == "predictions":
            outputs, is_class = _plain(test.outputs), run.prepared.task.kind == "classification"
            predicted = outputs.argmax(-1) if is_class else outputs[:, 0]
            arrays = {"label": labels, "predicted": predicted, "outputs": outputs, "row": run.prepared.test_rows}
            packed[name] = pack(arrays)
        else:
            unit = run.prepared.unit
            held = {weight: _plain(tensor) for weight, tensor in weights().items()}
            for part, value in () if unit is None else unit._asdict().items():
                held[f"labels.{part}"] = np.asarray(value, np.float64)
            packed[name] = pack(held)
    return packed


def _plain(tensor: Tensor) -> NDArray[np.generic]:
    array: NDArray[np.generic] = tensor.detach().cpu().numpy()
    return array


@dataclass(frozen=True)
class Judged:
    """The evaluation of a trained run; a diverged one has no outcome.

    `message` reports how it diverged, or which validator or metric failed, and `traceback` where.
    """

    outcome: Outcome | None = None
    validation: dict[str, float] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    message: str | None = None
    traceback: str | None = None
    arrays: dict[str, bytes] = field(default_factory=dict)


def judge(runs: Sequence[Run], program: Judgeable, trained: Sequence[Trained]) -> list[Judged]:
    """The evaluation of each run of a trained program."""
    if all(run_end.diverged_in is not None for run_end in trained):
        return [_diverged(run, run_end) for run, run_end in zip(runs, trained, strict=True)]
    tested = program.apply([run.prepared.test.x for run in runs])
    validated = _validated(runs, program)
    corrections = _corrections(runs, program, trained)
    records = []
    for place, (run, run_end, by) in enumerate(zip(runs, trained, corrections, strict=True)):
        test = _restored(run, _corrected(tested[place], by))
        seen = [*(_corrected(target, by) for target in validated[place][:1]), *validated[place][1:]]
        judged = _judge(run, run_end, test, seen, partial(_mixed, runs, program, place, by))
        keeps = run.cell.keep and judged.outcome is not None
        arrays = kept_arrays(run, test, partial(program.weights, place)) if keeps else {}
        records.append(replace(judged, arrays=arrays))
    return records


def judge_given(run: Run) -> Judged:
    """The evaluation of predictions that come with the data.

    Raises:
        DataError: a test example has none.
    """
    prepared, outputs = run.prepared, run.prepared.predictions
    lacking = len(prepared.test.y) if outputs is None else int(outputs.isnan().any(1).sum())
    if outputs is None or lacking:
        what = f"{lacking} of {len(prepared.test.y)} test examples of target {run.cell.target!r} have no prediction"
        raise DataError(f"dataset {run.cell.dataset.name}: {what}")
    outcome = test_outcome(outputs, prepared.task, prepared.test.y)
    if outcome is None:
        return Judged(message="a prediction was not finite")
    metrics = run.components.metrics if outcome.n_test else ()
    values = metric_values(metrics, outcome, outputs, prepared.test.y)
    arrays = kept_arrays(run, Seen(outputs, outputs), dict) if run.cell.keep else {}
    message, traceback = "; ".join(values.faults) or None, "".join(values.traces) or None
    return Judged(outcome, {}, values.by_name, {}, message, traceback, arrays)


def _validated(runs: Sequence[Run], program: Judgeable) -> list[list[Seen]]:
    """What the validators of each run see; the target alone where only its labels ask for it, or nothing."""
    parts = runs[0].components
    asked = parts.scheme.needs_target_labels and parts.scheme.hold_out
    if not (parts.validators or asked):
        return [[] for _ in runs]
    examples = [validation_examples(run.prepared)[: None if parts.validators else 1] for run in runs]
    seen = [program.apply(part) for part in zip(*examples, strict=True)]
    return [list(of_run) for of_run in zip(*seen, strict=True)]


def _corrections(runs: Sequence[Run], program: Judgeable, trained: Sequence[Trained]) -> list[Tensor | None]:
    """What each run's cell has added to its logits for the target, because of other shares of classes there."""
    if runs[0].cell.prior_correction is None:
        return [None for _ in runs]
    seen = program.apply([validation_examples(run.prepared)[0] for run in runs])
    return [
        None
        if run_end.diverged_in is not None
        else correction(target.outputs, _class_shares(run, run_end).to(run.data.y.device))
        for run, run_end, target in zip(runs, trained, seen, strict=True)
    ]


def _class_shares(run: Run, trained: Trained) -> Tensor:
    """(classes,) float64: mean shares of classes in the labelled groups, by the weights that training gave these."""
    classes, data = run.prepared.task.classes, run.data
    groups = [torch.cat([data.y[data.rows[domain]] for domain in group]) for group in run.groups]
    shares = torch.stack([y.bincount(minlength=classes).double().cpu() / len(y) for y in groups])
    return trained.trace.weights @ shares


def _corrected(seen: Seen, by: Tensor | None) -> Seen:
    return seen if by is None else replace(seen, outputs=seen.outputs + by)


def _restored(run: Run, seen: Seen) -> Seen:
    return replace(seen, outputs=run.prepared.restored(seen.outputs))


def _mixed(
    runs: Sequence[Run], program: Judgeable, place: int, by: Tensor | None, first: Tensor, second: Tensor, share: float
) -> Tensor:
    """One run's outputs for mixtures of its target's training examples, as a `ValidationView` has them."""
    training = runs[place].prepared.training
    rows, outputs = training.rows[training.target], []
    size = chunk(training.x)
    for pair in zip(torch.split(first, size), torch.split(second, size), strict=True):
        x, other = (dense(batch_of(training.x, rows[part.to(rows.device)])) for part in pair)
        # The other runs of a stack predict the same examples, since all runs of it predict together.
        outputs.append(program.apply([share * x + (1 - share) * other] * len(runs))[place].outputs)
    return torch.cat(outputs) if by is None else torch.cat(outputs) + by


def _judge(run: Run, trained: Trained, test: Seen, seen: Sequence[Seen], mix: Mix) -> Judged:
    if trained.diverged_in is not None:
        return _diverged(run, trained)
    prepared = run.prepared
    outcome = test_outcome(test.outputs, prepared.task, prepared.test.y)
    if outcome is None:
        return Judged(message="an output on the target's test examples was not finite")
    bound = _bound(trained.trace.weights, [sum(group) for group in run.sizes])
    parts = run.components
    metrics = parts.metrics if outcome.n_test else ()
    values = metric_values(metrics, outcome, test.outputs, prepared.test.y)
    of_oracle = target_score(prepared, parts.scheme, seen[0]) if seen else {}
    scores = validation_scores(parts.validators, prepared, seen, mix)
    by_name = scores.by_name | of_oracle
    faults, traces = scores.faults + values.faults, scores.traces + values.traces
    message, traceback = "; ".join(faults) or None, "".join(traces) or None
    return Judged(outcome, by_name, values.by_name, bound, message, traceback)


def _bound(weights: Tensor, sizes: Sequence[int]) -> dict[str, float]:
    """||alpha||, and m / ||alpha||^2; where groups differ in size, 1 / sum_i (alpha_i^2 / m_i), which is the same."""
    largest = max(sizes)
    # Sizes are taken relative to the largest, so that equal ones change no bit.
    scale = (largest / torch.tensor(sizes, dtype=weights.dtype)).sqrt()
    effective = largest / float(torch.linalg.vector_norm(weights * scale)) ** 2
    return {"weights_norm": float(torch.linalg.vector_norm(weights)), "effective_sample_size": effective}


def _diverged(run: Run, trained: Trained) -> Judged:
    training, message = run.prepared.training, f"a risk, gap or weight was not finite in epoch {trained.diverged_in}"
    for domain, rows in training.rows.items():
        parts = (dense(batch_of(training.x, part)) for part in torch.split(rows, chunk(training.x)))
        if not all(bool(part.isfinite().all()) for part in parts):
            return Judged(message=f"{message}; the inputs of domain {domain!r} are not finite")
    return Judged(message=message)
