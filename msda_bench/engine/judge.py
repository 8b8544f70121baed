"""Evaluates trained runs for their records, and for the files that a suite keeps beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msda_bench.api import DataError
from msda_bench.engine.evaluate import (
    Mix,
    scored,
    target_score,
    test_outcome,
    validation_examples,
    validation_view,
    view_of,
)
from msda_bench.engine.fit import Trained
from msda_bench.engine.fitted import Fitted
from msda_bench.engine.label_shift import correction
from msda_bench.engine.runs import Run, Seen
from msda_bench.engine.stacked import Program
from msda_bench.engine.tensors import batch_of, chunk, dense
from msda_bench.store.arrays import pack
from msda_bench.store.record import Outcome, Record, Status

_Model: TypeAlias = Program | Fitted


def _kept_arrays(run: Run, test: Tensor, weights: Callable[[], Mapping[str, Tensor]]) -> dict[str, bytes]:
    """The files that the run's cell asks for, by name; predictions are of the test."""
    packed: dict[str, bytes] = {}
    labels = _plain(run.prepared.test.y)
    for name in run.cell.keep:
        if name == "predictions":
            outputs, is_class = _plain(test), run.prepared.task.kind == "classification"
            predicted = outputs.argmax(-1) if is_class else outputs[:, 0]
            arrays = {"label": labels, "predicted": predicted, "outputs": outputs, "row": run.prepared.test_rows}
            if _are_unknown(labels):
                arrays["sources"] = source_labels(run, is_class=is_class)
            packed[name] = pack(arrays)
        else:
            unit = run.prepared.unit
            held = {weight: _plain(tensor) for weight, tensor in weights().items()}
            for part, value in () if unit is None else unit._asdict().items():
                held[f"labels.{part}"] = np.asarray(value, np.float64)
            packed[name] = pack(held)
    return packed


def _are_unknown(labels: NDArray[Any]) -> bool:
    """Whether these are the labels of a target that has none."""
    return bool((np.isnan(labels) if np.issubdtype(labels.dtype, np.floating) else labels < 0).all())


def source_labels(run: Run, *, is_class: bool) -> NDArray[np.generic]:
    """What the answers for a target without labels can be compared with, a row for each source.

    That is how many training examples each class has, or the least and the largest label.
    """
    training, found = run.prepared.training, []
    for source in run.cell.sources:
        labels = training.y[training.rows[source]]
        if is_class:
            found.append(labels.bincount(minlength=run.prepared.task.classes))
        else:
            found.append(torch.stack(run.prepared.restored(labels).aminmax()))
    return _plain(torch.stack(found))


def _plain(tensor: Tensor) -> NDArray[np.generic]:
    array: NDArray[np.generic] = tensor.detach().cpu().numpy()
    return array


def judge(runs: Sequence[Run], program: _Model, trained: Sequence[Trained]) -> list[Record]:
    """The record of each run of a trained program, but for its timing and the device."""
    if all(run_end.diverged_in is not None for run_end in trained):
        return [_diverged(run, run_end) for run, run_end in zip(runs, trained, strict=True)]
    tested = program.apply([run.prepared.test.x for run in runs])
    validated = _validated(runs, program)
    records = []
    for place, (run, run_end) in enumerate(zip(runs, trained, strict=True)):
        if run_end.diverged_in is not None:
            records.append(_diverged(run, run_end))
            continue
        by = _correction(run, run_end, validated[place])
        test = run.prepared.restored(_corrected(tested[place].outputs, by))
        target, rest = validated[place][:1], validated[place][1:]
        seen = [*(replace(one, outputs=_corrected(one.outputs, by)) for one in target), *rest]
        mix, weights = partial(_mixed, runs, program, place, by), partial(program.weights, place)
        records.append(_scored(run, run_end, test, weights, seen, mix))
    return records


def judge_given(run: Run, trained: Trained) -> Record:
    """The record of predictions that come with the data; see `judge`.

    Raises:
        DataError: a test example has none.
    """
    prepared, outputs = run.prepared, run.prepared.predictions
    lacking = len(prepared.test.y) if outputs is None else int(outputs.isnan().any(1).sum())
    if outputs is None or lacking:
        what = f"{lacking} of {len(prepared.test.y)} test examples of target {run.cell.target!r} have no prediction"
        raise DataError(f"dataset {run.cell.dataset.name}: {what}")
    return _scored(run, trained, outputs, dict)


def judge_diverged(run: Run, why: str) -> Record:
    """The record of a model that could not be fitted, or whose outputs are not finite, for a reason that it gives."""
    return _record(run, Trained(run), message=why)


def _validated(runs: Sequence[Run], program: _Model) -> list[list[Seen]]:
    """What the validators of each run see; the target alone where only its labels or a correction ask for it."""
    parts = runs[0].components
    asked = parts.scheme.needs_target_labels and parts.scheme.hold_out
    if not (parts.validators or asked or runs[0].cell.prior_correction is not None):
        return [[] for _ in runs]
    examples = [validation_examples(run.prepared)[: None if parts.validators else 1] for run in runs]
    seen = [program.apply(part) for part in zip(*examples, strict=True)]
    return [list(of_run) for of_run in zip(*seen, strict=True)]


def _correction(run: Run, trained: Trained, seen: Sequence[Seen]) -> Tensor | None:
    """What the run's cell has added to its logits for the target, because of other shares of classes there."""
    if run.cell.prior_correction is None:
        return None
    return correction(seen[0].outputs, class_shares(run, trained).to(run.data.y.device))


def class_shares(run: Run, trained: Trained) -> Tensor:
    """(classes,) float64: mean shares of classes in the labelled groups, by the weights that training gave these."""
    classes, data = run.prepared.task.classes, run.data
    groups = [torch.cat([data.y[data.rows[domain]] for domain in group]) for group in run.groups]
    shares = torch.stack([y.bincount(minlength=classes).double().cpu() / len(y) for y in groups])
    return trained.weights @ shares


def _corrected(outputs: Tensor, by: Tensor | None) -> Tensor:
    return outputs if by is None else outputs + by


def _mixed(
    runs: Sequence[Run],
    program: _Model,
    place: int,
    by: Tensor | None,
    first: Tensor,
    second: Tensor,
    share: float,
) -> Tensor:
    """One run's outputs for mixtures of its target's training examples, as a `ValidationView` has them."""
    training = runs[place].prepared.training
    rows, outputs = training.rows[training.target], []
    size = chunk(training.x)
    for pair in zip(torch.split(first, size), torch.split(second, size), strict=True):
        x, other = (dense(batch_of(training.x, rows[part.to(rows.device)])) for part in pair)
        # The other runs of a stack predict the same examples, since all runs of it predict together.
        outputs.append(program.apply([share * x + (1 - share) * other] * len(runs))[place].outputs)
    return _corrected(torch.cat(outputs), by)


def _scored(
    run: Run,
    trained: Trained,
    outputs: Tensor,
    weights: Callable[[], Mapping[str, Tensor]],
    seen: Sequence[Seen] = (),
    mix: Mix | None = None,
) -> Record:
    """The record with its outcome, its kept files, and the scores of validators, if they can mix, and metrics."""
    prepared, parts = run.prepared, run.components
    outcome = test_outcome(outputs, prepared.task, prepared.test.y)
    if outcome is None:
        return _record(run, trained, message="an output on the target's test examples was not finite")
    # Components' code comes last: what it changes in the process is put back after the run.
    bound = _bound(trained.weights, [sum(group) for group in run.sizes]) if len(trained.weights) else {}
    arrays = _kept_arrays(run, outputs, weights)
    scores = target_score(prepared, parts.scheme, seen[0]) if seen else {}
    tested = partial(view_of, outcome, outputs, prepared.test.y)
    values, faults = scored(parts.metrics if outcome.n_test else (), lambda metric: metric.value(tested()))
    if mix is not None:
        validated, first = scored(
            parts.validators, lambda validator: validator.score(validation_view(prepared, seen, mix))
        )
        scores, faults = validated | scores, first + faults
    traceback = "".join(trace for _, trace in faults)
    return _record(
        run,
        trained,
        outcome=outcome,
        bound=bound,
        validation=scores,
        metrics=values,
        message="; ".join(line for line, _ in faults) or None,
        provenance={"traceback": traceback} if traceback else {},
        arrays=arrays,
        saved={name: hashlib.sha256(data).hexdigest() for name, data in arrays.items()},
    )


def _record(run: Run, trained: Trained, outcome: Outcome | None = None, **more: Any) -> Record:
    cell, asked = run.cell, run.components.scheme.needs_target_labels or run.cell.labelled_target > 0
    status: Status = "diverged" if outcome is None else "ok"
    timing: dict[str, int | float] = {"steps": trained.steps}
    return Record(cell.key, cell.to_json(), status, outcome, trained.curves, target_labels=asked, timing=timing, **more)


def _bound(weights: Tensor, sizes: Sequence[int]) -> dict[str, float]:
    """||alpha||, and m / ||alpha||^2; where groups differ in size, 1 / sum_i (alpha_i^2 / m_i), which is the same."""
    largest = max(sizes)
    # Sizes are taken relative to the largest, so that equal ones change no bit.
    scale = (largest / torch.tensor(sizes, dtype=weights.dtype)).sqrt()
    effective = largest / float(torch.linalg.vector_norm(weights * scale)) ** 2
    return {"weights_norm": float(torch.linalg.vector_norm(weights)), "effective_sample_size": effective}


def _diverged(run: Run, trained: Trained) -> Record:
    training, message = run.prepared.training, f"a risk, gap or weight was not finite in epoch {trained.diverged_in}"
    for domain, rows in training.rows.items():
        parts = (dense(batch_of(training.x, part)) for part in torch.split(rows, chunk(training.x)))
        if not all(bool(part.isfinite().all()) for part in parts):
            return _record(run, trained, message=f"{message}; the inputs of domain {domain!r} are not finite")
    return _record(run, trained, message=message)
