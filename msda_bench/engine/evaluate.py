"""Evaluates trained runs for their records, and for the files that a suite keeps beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from msda_bench.api import DataError
from msda_bench.engine.fit import TrainingResult
from msda_bench.engine.fitted import FittedModel
from msda_bench.engine.label_shift import correction
from msda_bench.engine.outcome import (
    is_hidden,
    scored,
    target_score,
    test_outcome,
    validation_examples,
    validation_view,
    view_of,
)
from msda_bench.engine.runs import Predictions, Run
from msda_bench.engine.stacked import Program
from msda_bench.engine.tensors import batch_of, chunk, dense
from msda_bench.store.arrays import pack
from msda_bench.store.record import Outcome, Record, Status

_Model: TypeAlias = Program | FittedModel


def evaluate(runs: Sequence[Run], model: _Model, results: Sequence[TrainingResult]) -> list[Record]:
    """The record of each run of a trained program, without its timing and device."""
    if all(result.diverged_in is not None for result in results):
        return [_diverged(run, result) for run, result in zip(runs, results, strict=True)]
    tested = model.apply([run.prepared.test.x for run in runs])
    validated = _validated(runs, model)
    records = []
    for place, (run, result) in enumerate(zip(runs, results, strict=True)):
        if result.diverged_in is not None:
            records.append(_diverged(run, result))
            continue
        shift = _correction(run, result, validated[place])
        one = _Evaluated(runs, model, place, result, shift)
        outputs = run.prepared.restored(one.shifted(tested[place].outputs))
        records.append(one.record(outputs, validated[place]))
    return records


def evaluate_given(run: Run, model: FittedModel, result: TrainingResult) -> Record:
    """The record of predictions that come with the data; see `evaluate`.

    Raises:
        DataError: a test example has none.
    """
    prepared = run.prepared
    given = prepared.predictions
    n_test = len(prepared.test.y)
    lacking = n_test
    if given is not None:
        lacking = int(given.isnan().any(1).sum())
    if given is None or lacking:
        what = f"{lacking} of {n_test} test examples of target {run.cell.target!r} have no prediction"
        raise DataError(f"dataset {run.cell.dataset.name}: {what}")
    # In the user's unit, in float64 if labels are standardised: nothing restores or rounds them.
    outputs = torch.from_numpy(model.predicted(given.cpu().numpy())).to(given)
    return _Evaluated([run], model, 0, result).record(outputs, [])


def evaluate_diverged(run: Run, why: str) -> Record:
    """The record of a model that could not be fitted, or whose outputs are not finite, for a reason that it gives."""
    return _record(run, TrainingResult(run), message=why)


def _validated(runs: Sequence[Run], model: _Model) -> list[list[Predictions]]:
    """The predictions that each run's validators see; only the target's if no validator needs the sources'."""
    components = runs[0].components
    holds_out = components.scheme.needs_target_labels and components.scheme.target_holdout
    if not (components.validators or holds_out or runs[0].cell.prior_correction is not None):
        return [[] for _ in runs]
    examples = [validation_examples(run.prepared) for run in runs]
    if not components.validators:
        examples = [parts[:1] for parts in examples]
    seen = [model.apply(part) for part in zip(*examples, strict=True)]
    return [list(of_run) for of_run in zip(*seen, strict=True)]


def _correction(run: Run, result: TrainingResult, seen: Sequence[Predictions]) -> Tensor | None:
    """The correction of a run's logits for the target's class shares; None if its suite asks for none."""
    if run.cell.prior_correction is None:
        return None
    shares = class_shares(run, result)
    return correction(seen[0].outputs, shares.to(run.data.y.device))


def class_shares(run: Run, result: TrainingResult) -> Tensor:
    """(classes,) float64: mean shares of classes in the labelled groups, by the weights that training gave these."""
    classes = run.prepared.task.classes
    shares = []
    data = run.data
    for group in run.groups:
        y = torch.cat([data.y[data.rows[domain]] for domain in group])
        shares.append(y.bincount(minlength=classes).double().cpu() / len(y))
    return result.weights @ torch.stack(shares)


@dataclass(frozen=True, eq=False)
class _Evaluated:
    """One run of a trained program.

    Attributes:
        runs: all runs of the program.
        model: the program, or the fitted model.
        place: the run's place among them.
        result: of its training.
        shift: (classes,), added to its logits for the target; None for nothing.
    """

    runs: Sequence[Run]
    model: _Model
    place: int
    result: TrainingResult
    shift: Tensor | None = None

    @property
    def run(self) -> Run:
        return self.runs[self.place]

    def record(self, outputs: Tensor, seen: Sequence[Predictions]) -> Record:
        """The record: its outcome, the files to keep, and the scores of metrics and validators.

        Args:
            outputs: for the test examples, in the user's unit.
            seen: the predictions for `validation_examples`, or for the first of them, or none.
        """
        run = self.run
        prepared = run.prepared
        outcome = test_outcome(outputs, prepared.task, prepared.test.y)
        if outcome is None:
            return _record(run, self.result, message="an output on the target's test examples was not finite")
        # Components' code comes last: what it changes in the process is put back after the run.
        arrays = self._kept_arrays(outputs)
        bound = _bound(self.result.weights, [sum(group) for group in run.sizes])
        scores, metrics, faults = self._scores(outcome, outputs, seen)
        traceback = "".join(trace for _, trace in faults)
        saved = {name: hashlib.sha256(data).hexdigest() for name, data in arrays.items()}
        return _record(
            run,
            self.result,
            outcome=outcome,
            bound=bound,
            validation=scores,
            metrics=metrics,
            message="; ".join(line for line, _ in faults) or None,
            provenance={"traceback": traceback} if traceback else {},
            arrays=arrays,
            saved=saved,
        )

    def _scores(
        self, outcome: Outcome, outputs: Tensor, seen: Sequence[Predictions]
    ) -> tuple[dict[str, float], dict[str, float], list[tuple[str, str]]]:
        """The scores of validators and of the labels held out, those of metrics, and what failed."""
        prepared = self.run.prepared
        components = self.run.components
        tested = partial(view_of, outcome, outputs, prepared.test.y)
        asked = components.metrics if outcome.n_test else ()
        metrics, faults = scored(asked, lambda metric: metric.value(tested()))
        if not seen:
            return {}, metrics, faults
        target = Predictions(seen[0].features, self.shifted(seen[0].outputs))
        view = partial(validation_view, prepared, [target, *seen[1:]], self._mixed)
        scores, failed = scored(components.validators, lambda validator: validator.score(view()))
        scores |= target_score(prepared, components.scheme, target)
        return scores, metrics, failed + faults

    def shifted(self, outputs: Tensor) -> Tensor:
        """The model's outputs with the shift."""
        return outputs if self.shift is None else outputs + self.shift

    def _mixed(self, first: Tensor, second: Tensor, share: float) -> Tensor:
        """The outputs for mixtures of the target's training examples, as a `ValidationView` has them."""
        training = self.run.prepared.training
        rows = training.rows[training.target]
        size = chunk(training.x)
        outputs = []
        for some, others in zip(torch.split(first, size), torch.split(second, size), strict=True):
            x = dense(batch_of(training.x, rows[some.to(rows.device)]))
            other = dense(batch_of(training.x, rows[others.to(rows.device)]))
            mixed = share * x + (1 - share) * other
            # The other runs of a stack predict the same examples, since all runs of it predict together.
            predicted = self.model.apply([mixed] * len(self.runs))
            outputs.append(predicted[self.place].outputs)
        return self.shifted(torch.cat(outputs))

    def _kept_arrays(self, outputs: Tensor) -> dict[str, bytes]:
        """The files that the suite keeps beside the record, by name."""
        packed: dict[str, bytes] = {}
        for name in self.run.cell.keep:
            arrays = _predicted(self.run, outputs) if name == "predictions" else self._weights()
            packed[name] = pack(arrays)
        return packed

    def _weights(self) -> dict[str, NDArray[Any]]:
        """The weights of the run, and the unit of a regression's labels."""
        weights = self.model.weights(self.place)
        kept = {name: _array(tensor) for name, tensor in weights.items()}
        unit = self.run.prepared.unit
        if unit is not None:
            for part, value in unit._asdict().items():
                kept[f"labels.{part}"] = np.asarray(value, np.float64)
        return kept


def _predicted(run: Run, outputs: Tensor) -> dict[str, NDArray[Any]]:
    """The test's labels, predictions, outputs and rows; of a target without labels also those of its sources."""
    prepared = run.prepared
    arrays = {
        "label": _array(prepared.test.y),
        "predicted": _array(prepared.task.rules.predicted(outputs)),
        "outputs": _array(outputs),
        "row": prepared.test_rows,
    }
    if is_hidden(prepared.task, prepared.test.y):
        arrays["sources"] = source_labels(run)
    return arrays


def source_labels(run: Run) -> NDArray[np.generic]:
    """The labels of the sources, for comparison with predictions on a target without labels: a row for each source.

    That is how many training examples each class has, or the least and the largest label.
    """
    prepared = run.prepared
    training = prepared.training
    task = prepared.task
    summaries = []
    for source in run.cell.sources:
        y = prepared.restored(training.y[training.rows[source]])
        summaries.append(task.rules.summary(y, task.classes))
    return _array(torch.stack(summaries))


def _array(tensor: Tensor) -> NDArray[np.generic]:
    array: NDArray[np.generic] = tensor.detach().cpu().numpy()
    return array


def _record(run: Run, result: TrainingResult, outcome: Outcome | None = None, **more: Any) -> Record:
    cell = run.cell
    sees_labels = run.components.scheme.needs_target_labels or cell.labelled_target > 0
    status: Status = "diverged" if outcome is None else "ok"
    timing: dict[str, int | float] = {"steps": result.steps}
    return Record(
        cell.key,
        cell.to_json(),
        status,
        outcome,
        result.curves,
        target_labels=sees_labels,
        timing=timing,
        **more,
    )


def _bound(weights: Tensor, sizes: Sequence[int]) -> dict[str, float]:
    """||alpha||, and m / ||alpha||^2; where groups differ in size, 1 / sum_i (alpha_i^2 / m_i), which is the same.

    Empty without weights.
    """
    if not len(weights):
        return {}
    largest = max(sizes)
    # Sizes are taken relative to the largest, so that equal ones change no bit.
    scale = (largest / torch.tensor(sizes, dtype=weights.dtype)).sqrt()
    effective = largest / float(torch.linalg.vector_norm(weights * scale)) ** 2
    norm = float(torch.linalg.vector_norm(weights))
    return {"weights_norm": norm, "effective_sample_size": effective}


def _diverged(run: Run, result: TrainingResult) -> Record:
    training = run.prepared.training
    message = result.divergence
    for domain, rows in training.rows.items():
        for part in torch.split(rows, chunk(training.x)):
            x = dense(batch_of(training.x, part))
            if not x.isfinite().all():
                return _record(run, result, message=f"{message}; the inputs of domain {domain!r} are not finite")
    return _record(run, result, message=message)
