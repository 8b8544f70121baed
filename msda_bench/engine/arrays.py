"""Trains a cell on arrays in memory, and predicts with the model; for callers without a dataset to load."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import Array, Inputs, InputSpec
from msda_bench.engine.fit import TrainingResult, fit
from msda_bench.engine.model import Components
from msda_bench.engine.prepared import Prepared
from msda_bench.engine.runs import Predictions, Run
from msda_bench.engine.settings import deterministic, products
from msda_bench.engine.single import Single
from msda_bench.engine.standardised import Scale
from msda_bench.engine.tensors import Examples, Unit, as_examples
from msda_bench.plugins import Registry
from msda_bench.plugins.process_state import restored
from msda_bench.plugins.torch_state import neutral
from msda_bench.suite.protocol import source_parts
from msda_bench.suite.run_spec import RunSpec

_WIDE = 1_000_000
"""From so many columns on, memory is checked before training."""
_FLOAT, _INT = 4, 8
"""Bytes of a number in a batch, and of a row's place."""
_COPIES = 4
"""Numbers held for each weight in training: itself, its gradient, and two of the optimizer's."""


@dataclass(frozen=True, eq=False)
class Model:
    """A trained run without its training data; it can be copied and pickled.

    Attributes:
        cell: the trained cell.
        components: its components.
        state: parameters and buffers by name, on the CPU.
        carried: the tensors that the run carried at its end, on the CPU.
        weights: the weight alpha of each source by name, averaged over steps as in a record.
        unit: of the labels of a regression, and of its outputs.
        scales: of each domain's inputs, if each is standardised by its own; empty otherwise.
    """

    cell: RunSpec
    components: Components
    state: dict[str, Tensor]
    carried: dict[str, Tensor]
    weights: dict[str, float]
    unit: Unit | None
    scales: Mapping[str, Scale]

    def predict(self, x: Inputs, device: str) -> Predictions:
        """The features and outputs that the scheme predicts for rows, which `scales` have standardised; on the CPU."""
        where = torch.device(device)
        with settings(self.cell, where):
            return self.apply(as_examples(x, where), where)

    def apply(self, examples: Examples, where: torch.device) -> Predictions:
        """The features and outputs of examples on a device, within its `settings`; on the CPU."""
        none = _no_rows(self.components.dataset.input)
        # Parts of sources need no rows here either, only their number.
        cell = self.cell if self.cell.split_sources is None else _unsplit(self.cell)
        sources = dict.fromkeys(cell.sources, (none, np.empty(0)))
        program = Single(_run(cell, self.components, sources, none, where), where)
        program.modules.load_state_dict(self.state)
        program.state = {name: value.to(where) for name, value in self.carried.items()}
        (seen,) = program.apply([examples])
        return Predictions(seen.features.cpu(), seen.outputs.cpu())


def train_arrays(
    cell: RunSpec,
    registry: Registry,
    sources: Mapping[str, tuple[Inputs, Array]],
    target: Inputs,
    device: str,
) -> Model:
    """Trains a cell on arrays in memory, like a suite's run on these rows in this order.

    Args:
        cell: the cell; its dataset only describes the arrays.
        registry: the components.
        sources: inputs and labels of each source.
        target: the target's inputs; its labels do not exist here.
        device: "cpu" or "cuda".

    Raises:
        ValueError: training diverged, needs more steps than it has, or needs more memory than this machine has.
        BenchError: a component breaks its contract.
    """
    where = torch.device(device)
    scales = _scales(cell, sources, target)
    if scales:
        sources = {name: (scales[name](x), y) for name, (x, y) in sources.items()}
        target = scales[cell.target](target)
    with settings(cell, where):
        components = Components.of(cell, registry)
        _check_weights(components)
        run = _run(cell, components, sources, target, where)
        _check_steps(run)
        _check_batch(run)
        program = Single(run, where)
        (trained,) = fit([run], program)
    if trained.diverged_in is not None:
        remedy = "scale X, or choose a lower learning rate or mu"
        raise ValueError(f"training diverged: {trained.divergence}; {remedy}")
    return model_of(run, program, trained, scales)


def model_of(
    run: Run,
    program: Single,
    trained: TrainingResult,
    scales: Mapping[str, Scale],
) -> Model:
    """The model of a trained run."""
    weights = program.modules.state_dict()
    return Model(
        cell=run.cell,
        components=run.components,
        state={name: value.detach().cpu().clone() for name, value in weights.items()},
        carried={name: value.cpu() for name, value in program.state.items()},
        weights=_weights(run, trained),
        unit=run.prepared.unit,
        scales=scales,
    )


def _unsplit(cell: RunSpec) -> RunSpec:
    """The cell with each part of its sources as a source."""
    splitting = cell.split_sources
    assert splitting is not None  # noqa: S101 - asked before
    parts = tuple(part for source in cell.sources for part in source_parts(source, splitting))
    return replace(cell, sources=parts, split_sources=None)


def _scales(cell: RunSpec, sources: Mapping[str, tuple[Inputs, Array]], target: Inputs) -> dict[str, Scale]:
    """The scale of each domain; empty if the cell standardises none."""
    if cell.standardise is None:
        return {}
    scales = {name: Scale.of(x) for name, (x, _) in sources.items()}
    scales[cell.target] = Scale.of(target)
    return scales


def _run(
    cell: RunSpec,
    components: Components,
    sources: Mapping[str, tuple[Inputs, Array]],
    target: Inputs,
    device: torch.device,
) -> Run:
    task = components.dataset.task
    standardise = cell.standardise_labels and target.shape[0] > 0
    prepared = Prepared.of_arrays(
        task,
        sources,
        cell.target,
        target,
        device,
        standardise=standardise,
    )
    return Run(cell, components, prepared)


def _no_rows(input: InputSpec) -> Inputs:
    if not input.sparse:
        return np.empty((0, *input.shape), np.float32)
    from scipy.sparse import csr_matrix

    return csr_matrix((0, *input.shape), dtype=np.float32)


def _check_weights(components: Components) -> None:
    """Refuses rows or layers so wide that the weights do not fit into memory, before anything is allocated."""
    dataset = components.dataset
    backbone = components.backbone
    columns = dataset.input.shape[0]
    if max([columns, *_whole_numbers(backbone.params())]) < _WIDE:
        return
    try:
        with torch.device("meta"):
            network = backbone.build(dataset.task, components.input)
        parameters = [*network.features.parameters(), *network.predictor.parameters()]
        weights = sum(value.numel() * value.element_size() for value in parameters)
    except RuntimeError:  # more than 64 bits can count
        weights = sys.maxsize
    if columns >= _WIDE:
        _check_memory(weights * _COPIES, f"X: {columns} columns", "keep fewer columns, or set narrower `hidden` layers")
    _check_memory(weights * _COPIES, f"backbone {backbone.name}: its layers", "set narrower `hidden` layers")


def _whole_numbers(params: Any) -> Iterator[int]:
    """All whole numbers in parameters, however deep."""
    if isinstance(params, int):
        yield params
    elif isinstance(params, Mapping):
        yield from _whole_numbers([*params.values()])
    elif isinstance(params, list | tuple):
        for part in params:
            yield from _whole_numbers(part)


def _check_batch(run: Run) -> None:
    """Refuses batches, or epochs of so many steps, that do not fit into memory."""
    drawn = run.batch * (len(run.groups) * run.batches + 1)
    spec = run.components.dataset.input
    batch = drawn * (1 if spec.sparse else spec.shape[0]) * _FLOAT
    _check_memory(batch, f"batch: {run.batch} examples of each domain", "set a smaller batch")
    rows = run.steps * drawn * 2 * _INT
    _check_memory(rows, f"training.steps: an epoch of {run.steps} steps", "set fewer, and more epochs")


def _check_memory(needed: int, what: str, remedy: str) -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory:
        shown = f"{needed / 2**30:.0f} GiB to train, and this machine has {memory / 2**30:.0f}"
        raise ValueError(f"{what} need {shown}; {remedy}")


def _check_steps(run: Run) -> None:
    """Refuses fewer training steps than the scheme has stages, such as those of SHOT on few rows."""
    stages = len(run.scheme.stages)
    steps = run.all_steps
    if steps < stages:
        raise ValueError(
            f"epochs: scheme {run.scheme.name!r} trains in {stages} stages, and these rows in batches of "
            f"`batch` make {steps} step{'' if steps == 1 else 's'}; set more epochs, or a smaller batch"
        )


@contextmanager
def settings(cell: RunSpec, device: torch.device) -> Iterator[None]:
    """The process settings of a run. Undoes changes that a component makes to others, and warns."""
    with neutral(), restored() as changed, deterministic(device), products(cell.training.precision, device):
        yield
    if changed and threading.current_thread() is threading.main_thread():  # elsewhere another thread may have been it
        warnings.warn(f"a component changed {' and '.join(changed)}; it was put back", stacklevel=4)


def _weights(run: Run, trained: TrainingResult) -> dict[str, float]:
    """The weight alpha of each source, or of each part of one; pooled ones share their group's by their sizes."""
    weights = dict.fromkeys((source for group in run.groups for source in group), 0.0)
    for group, sizes, alpha in zip(run.groups, run.sizes, trained.weights.tolist(), strict=True):
        for source, size in zip(group, sizes, strict=True):
            weights[source] += alpha * size / sum(sizes)
    return weights
