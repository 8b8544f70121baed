"""The training core: cells in, records out.

`Trainer.train` is the one door: how cells are trained behind it is nobody else's affair.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from msda_bench.api import Batch, Files, PluginError, Step
from msda_bench.engine.accelerate import accelerate
from msda_bench.engine.evaluate import test_outcome, validation_scores
from msda_bench.engine.model import Components, Model, build_model
from msda_bench.engine.optim import PhaseOptimizers
from msda_bench.engine.prepare import Prepared, Preparer, TrainingData
from msda_bench.engine.provenance import distributions, provenance
from msda_bench.engine.sampler import Sampler
from msda_bench.engine.settings import deterministic
from msda_bench.engine.streams import seeded, stream_key
from msda_bench.engine.tensors import take
from msda_bench.engine.trace import Trace
from msda_bench.functional import SparseRows, split_key
from msda_bench.plugins import Registry
from msda_bench.store.record import Outcome, Record
from msda_bench.suite.cell import Cell


class Trainer:
    """Trains cells on one device; keeps the data of the last split between calls.

    Args:
        registry: the installed components.
        files: how datasets reach their files.
        device: "cpu", "cuda" or "cuda:N".
    """

    def __init__(self, registry: Registry, files: Files, device: str) -> None:
        self._registry = registry
        self._device = torch.device(device)
        self._preparer = Preparer(files, self._device)

    def train(self, cells: Sequence[Cell]) -> list[Record]:
        """The records of the cells, in order, each ok or diverged.

        Raises:
            BenchError: a component or the data cannot be used; one line says which and why.
        """
        with deterministic(self._device):
            return [self._train_one(cell) for cell in cells]

    def _train_one(self, cell: Cell) -> Record:
        start = time.perf_counter()
        components = Components.of(cell, self._registry)
        prepared = self._preparer.prepare(components.dataset, cell)
        model = build_model(cell, components, self._device)
        accelerate(model, self._device)
        ready = time.perf_counter()
        trained = _train(cell, components, model, prepared.training_for(components.scheme))
        done = time.perf_counter()
        judged = _judge(components, model, prepared, trained)
        timing = {"prepare": ready - start, "train": done - ready, "evaluate": time.perf_counter() - done}
        return Record(
            key=cell.key,
            cell=cell.to_json(),
            status="diverged" if judged.outcome is None else "ok",
            outcome=judged.outcome,
            curves=trained.trace.curves,
            bound=judged.bound,
            validation=judged.validation,
            target_labels=components.scheme.needs_target_labels,
            message=judged.message,
            timing={name: round(seconds, 4) for name, seconds in timing.items()} | {"steps": trained.steps},
            provenance=provenance(self._device, distributions(cell, self._registry)),
        )


@dataclass(frozen=True)
class _Trained:
    trace: Trace
    steps: int
    diverged_in: int | None


def _train(cell: Cell, components: Components, model: Model, data: TrainingData) -> _Trained:
    loop = _Loop(cell, components, model, data)
    model.modules.train()
    # Our own draws never touch torch's generator; seeding it makes a stranger's layer repeatable too.
    with seeded(cell, "global generator", data.y.device):
        for epoch in range(cell.training.epochs):
            loop.epoch(epoch)
            if not _close(loop.trace, cell):
                return _Trained(loop.trace, (epoch + 1) * loop.steps, epoch + 1)
    return _Trained(loop.trace, cell.training.epochs * loop.steps, None)


def _close(trace: Trace, cell: Cell) -> bool:
    try:
        return trace.close_epoch()
    except ValueError as error:
        ref = cell.aggregator or cell.scheme
        raise PluginError(f"{ref.kind} {ref.name!r} of {ref.distribution} left the simplex: {error}") from error


class _Loop:
    """The steps of one run."""

    def __init__(self, cell: Cell, components: Components, model: Model, data: TrainingData) -> None:
        device = data.y.device
        training, scheme = cell.training, components.scheme
        sizes = tuple(tuple(len(data.rows[domain]) for domain in group) for group in model.groups)
        self.steps = training.steps or scheme.steps(sizes, training.batch)
        drawn = (*model.groups, (cell.target,)) if components.draws_target else model.groups
        keys = torch.stack([stream_key(cell, "batches", *group) for group in drawn])
        self._sampler = Sampler(data, drawn, training.batch, self.steps, keys)
        self._optimizers = PhaseOptimizers(training, model, scheme.phases, sparse=isinstance(data.x, SparseRows))
        self._model, self._scheme, self._data = model, scheme, data
        self._dropouts = model.dropouts
        self._step_stream = stream_key(cell, "steps").to(device)
        self._state = self._initial_state(components)
        self.trace = Trace(model.groups, self.steps, device)

    def _initial_state(self, components: Components) -> Tensor:
        device, k = self._data.y.device, len(self._model.groups)
        aggregator = components.aggregator
        return aggregator.initial_state(k).to(device) if aggregator else torch.zeros(0, device=device)

    def epoch(self, number: int) -> None:
        """One epoch, without a host sync."""
        rows = self._sampler.epoch(number)
        keys = self._keys(number)
        k = len(self._model.groups)
        for step in range(self.steps):
            for place, dropout in enumerate(self._dropouts, start=1):
                dropout.key = keys[step, place]
            x = take(self._data.x, rows[step].reshape(-1))
            self._step(step, Batch(x, self._data.y[rows[step, :k]], keys[step, 0]))

    def _keys(self, epoch: int) -> Tensor:
        """(steps, 1 + dropout layers, 2) int32: in each step a key for the scheme and one for each dropout layer."""
        places = 1 + len(self._dropouts)
        first = epoch * self.steps * places
        index = torch.arange(first, first + self.steps * places, dtype=torch.int32, device=self._step_stream.device)
        return split_key(self._step_stream, index).view(self.steps, places, 2)

    def _step(self, step: int, batch: Batch) -> None:
        state = self._state
        for phase in self._scheme.phases:
            taken = self._scheme.step(self._model.parts, batch, state, phase)
            self._check(taken, len(batch.y))
            self._optimizers.zero_grad()
            taken.objective.backward()  # type: ignore[no-untyped-call]
            self._optimizers.step(phase)
            state = taken.state.detach()
            self.trace.add(step, taken)
        self._state = state

    def _check(self, taken: Step, k: int) -> None:
        shapes = [tuple(part.shape) for part in (taken.objective, taken.risks, taken.gaps, taken.weights)]
        if shapes != [(), (k,), (k,), (k,)]:
            raise PluginError(
                f"scheme {self._scheme.name!r} gave objective, risks, gaps and weights of shapes {shapes}; with {k} "
                f"groups the contract asks for {[(), (k,), (k,), (k,)]}"
            )


@dataclass(frozen=True)
class _Judged:
    """What a trained model is worth; without an outcome it diverged. `message` says how, or which validator failed."""

    outcome: Outcome | None = None
    validation: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    message: str | None = None


def _judge(components: Components, model: Model, prepared: Prepared, trained: _Trained) -> _Judged:
    if trained.diverged_in is not None:
        return _Judged(message=f"a risk, gap or weight was not finite in epoch {trained.diverged_in}")
    model.modules.eval()
    outcome = test_outcome(model.parts, prepared.task, prepared.test)
    if outcome is None:
        return _Judged(message="an output on the target's test examples was not finite")
    norm = float(torch.linalg.vector_norm(trained.trace.weights))
    rows = prepared.training.rows
    size = max(sum(len(rows[domain]) for domain in group) for group in model.groups)
    bound = {"weights_norm": norm, "effective_sample_size": size / norm**2}
    scores = validation_scores(model.parts, components, prepared)
    return _Judged(outcome, scores.by_name, bound, "; ".join(scores.faults) or None)
