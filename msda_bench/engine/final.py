"""Trains a method on all labelled examples of a dataset, as a model that predicts new rows and can be stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import (
    Array,
    Augments,
    BenchError,
    DataError,
    Dataset,
    DomainData,
    Files,
    InputSpec,
    Predictor,
    Task,
    component,
)
from msda_bench.data.features import Frozen
from msda_bench.engine.arrays import Model, model_of, settings
from msda_bench.engine.evaluate import class_shares, source_labels
from msda_bench.engine.fit import TrainingResult, fit
from msda_bench.engine.fitted import FittedModel, fit_predictor
from msda_bench.engine.label_shift import correction
from msda_bench.engine.model import Components
from msda_bench.engine.picker import Learned, Picker
from msda_bench.engine.prepare import Preparer
from msda_bench.engine.runs import Run
from msda_bench.engine.single import Single
from msda_bench.engine.standardised import Scale
from msda_bench.engine.tensors import Examples, Unit, take
from msda_bench.plugins import Registry
from msda_bench.suite.run_spec import RunSpec


@component
class Described(Dataset):
    """A description of the data that a stored model needs, without their files."""

    name = "described"

    predicted: Task
    given: InputSpec

    @property
    def domains(self) -> tuple[str, ...]:
        """None: they are not here."""
        return ()

    @property
    def task(self) -> Task:
        """The task of the data."""
        return self.predicted

    @property
    def input(self) -> InputSpec:
        """The input of the data."""
        return self.given

    def load(self, domain: str, files: Files) -> DomainData:  # noqa: ARG002 - no files
        """Raises `DataError`: a model keeps no example."""
        raise DataError(f"domain {domain!r} is not kept with a model")


@dataclass(frozen=True, eq=False)
class FinalModel:
    """A method trained on all labelled examples, without these; it can be pickled.

    Attributes:
        cell: the run that was trained; its target is the domain whose rows it adapts to.
        components: its components.
        learned: the network with its weights, or what an estimator has fitted.
        features: the dataset's learned features; None if examples stay as they are.
        scale: of the target's inputs, if each domain is standardised by its own.
        unit: of the labels of a regression; None if they are the user's own.
        added: (classes,) what the correction for shares of classes adds to logits; None without it.
    """

    cell: RunSpec
    components: Components
    learned: Model | FittedModel
    features: Learned | None
    scale: Scale | None
    unit: Unit | None
    added: Tensor | None

    def outputs(self, data: DomainData, files: Files, device: str) -> Array:
        """The outputs of rows of the target.

        Args:
            data: n rows, as the dataset loads them.
            files: where frozen features are kept, and the weights of their network are found.
            device: "cpu" or "cuda".

        Returns:
            (n, outputs) float64: logits, or numbers in the user's unit.

        Raises:
            BenchError: an output is not finite, or a component breaks its contract.
        """
        where = torch.device(device)
        target = self.cell.target
        with settings(self.cell, where):
            examples = self._examples(data, files, where, device)
            if isinstance(self.learned, Model):
                outputs = self.learned.apply(examples, where).outputs
            else:
                outputs = self.learned.outputs(examples)
        outputs = outputs if self.added is None else outputs + self.added
        if not outputs.isfinite().all():
            raise BenchError(f"{target}: an output is not finite; look for numbers far off in the new rows")
        restored = outputs if self.unit is None else self.unit.restored(outputs)
        return restored.double().numpy()

    def _examples(
        self,
        data: DomainData,
        files: Files,
        where: torch.device,
        device: str,
    ) -> Examples:
        target = self.cell.target
        task = self.components.dataset.task
        frozen = Frozen.of(self.components.backbone, self.components.dataset)
        vectors = {}
        if frozen is not None:
            embedded = frozen.features(data, files, device)
            if frozen.beside:
                vectors = {target: embedded}
            else:
                data = replace(data, x=embedded)
        scales = {} if self.scale is None else {target: self.scale}
        pick = Picker(
            domains={target: data},
            features=self.features,
            vectors=vectors,
            task=task,
            device=where,
            resident=False,
            unit=None,
            scales=scales,
        )
        return pick.examples(target, np.arange(len(data.y)))


class Final(NamedTuple):
    """What `train_final` returns.

    Attributes:
        model: the trained model.
        weights: of each group of sources in training, by their names.
        rows: how many labelled rows were learned from.
        labels: (k, classes) int64, how many rows of each source have a class; or (k, 2), the least and largest label.
    """

    model: FinalModel
    weights: dict[str, float]
    rows: int
    labels: Array


def train_final(
    cell: RunSpec,
    registry: Registry,
    files: Files,
    target: DomainData | None,
    device: str,
) -> Final:
    """Trains a cell on all examples of its sources, and on a target that its dataset does not have.

    Args:
        cell: the run; its target is the name of the new domain.
        registry: the components.
        files: how datasets reach their files.
        target: the new domain, without labels; None for a method that sees no target.
        device: "cpu" or "cuda".

    Raises:
        BenchError: training diverged, a component breaks its contract, or the data cannot be used.
    """
    where = torch.device(device)
    with settings(cell, where):
        components = Components.of(cell, registry)
        preparer = Preparer(files, where)
        rows = target or _none_of(components.dataset, cell, files)
        prepared, pick = preparer.prepare_whole(
            components.dataset,
            cell,
            components.backbone,
            rows,
        )
        run = Run(cell, components, prepared, files)
        learned, program, result = _learned(run, where)
        added = None
        if cell.prior_correction is not None:
            (seen,) = program.apply([take(run.data.x, run.target_rows)])
            added = correction(seen.outputs, class_shares(run, result).to(where)).cpu()
    kept = _without_files(components)
    if isinstance(learned, Model):
        learned = replace(learned, components=kept)
    scale = pick.scales.get(cell.target)
    model = FinalModel(cell, kept, learned, pick.features, scale, prepared.unit, added)
    names = ["+".join(group) for group in run.groups]
    weights = dict(zip(names, result.weights.tolist(), strict=False))
    return Final(model, weights, len(run.labelled_rows), source_labels(run))


def _learned(run: Run, device: torch.device) -> tuple[Model | FittedModel, Single | FittedModel, TrainingResult]:
    """What a run has learned, in a form to be stored; what predicts with it; and its training.

    Raises:
        BenchError: training diverged.
    """
    if isinstance(run.components.scheme, Predictor):
        fitted, result = fit_predictor(run)
        return fitted, fitted, result
    program = Single(run, device)
    (result,) = fit([run], program)
    if result.diverged_in is not None:
        remedy = "choose a lower learning rate or mu in the suite"
        raise BenchError(f"training diverged: {result.divergence}; {remedy}")
    return model_of(run, program, result, {}), program, result


def _none_of(dataset: Dataset, cell: RunSpec, files: Files) -> DomainData:
    """A domain without rows, in the form of the first source."""
    data = replace(dataset).load(cell.sources[0], files)
    texts = None if data.texts is None else data.texts[:0]
    return DomainData(data.x[:0], data.y[:0], texts=texts)


def _without_files(components: Components) -> Components:
    """The components, with a dataset that reads no file, validators and metrics left out."""
    dataset = components.dataset
    if not isinstance(dataset, Augments):
        dataset = Described(predicted=dataset.task, given=dataset.input)
    return replace(components, dataset=dataset, validators=(), metrics=())
