"""Trains a cell on arrays with the engine, and keeps the model."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from msda_bench.api import Array, Inputs, Task
from msda_bench.engine.fit import Trained, fit
from msda_bench.engine.model import Components
from msda_bench.engine.prepare import Labelled, Prepared, TrainingData
from msda_bench.engine.runs import Run, Seen
from msda_bench.engine.settings import deterministic, products
from msda_bench.engine.single import Single
from msda_bench.engine.tensors import as_examples, concatenate
from msda_bench.plugins.process_state import restored
from msda_bench.sklearn.cell import registry
from msda_bench.sklearn.domains import TARGET, Domains
from msda_bench.suite.cell import Cell

_WIDE = 1_000_000
"""From so many columns on, memory is checked before training."""
_COPIES = 4
"""Of each weight in training: itself, its gradient, and two of the optimizer's."""


def check_device(device: str) -> None:
    """Refuses a device that is not here.

    Raises:
        ValueError: it is neither the CPU nor a GPU that PyTorch finds.
    """
    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError):
        kind = None
    if kind not in {"cpu", "cuda"}:
        raise ValueError(f"device: must be 'cpu' or 'cuda', not {device!r}")
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device: PyTorch finds no GPU here for {device!r}; use 'cpu'")


@dataclass(frozen=True, eq=False)
class Model:
    """A trained run without its training data; it can be copied and pickled.

    Attributes:
        cell: the trained cell.
        components: its components.
        empty: its domains, without examples.
        state: parameters and buffers by name, on the CPU.
        carried: the tensors that the run carried at its end, on the CPU.
        weights: the weight alpha of each source by name, averaged over steps as in a record.
    """

    cell: Cell
    components: Components
    empty: Domains
    state: dict[str, Tensor]
    carried: dict[str, Tensor]
    weights: dict[str, float]

    @property
    def sparse(self) -> bool:
        """Whether the training data were sparse."""
        return self.components.dataset.input.sparse

    def predict(self, x: Inputs, device: str) -> Seen:
        """The features and outputs that the scheme predicts for rows, on the CPU."""
        where = torch.device(device)
        with _settings(self.cell, where):
            program = Single(_run(self.cell, self.components, self.empty, where), where)
            program.modules.load_state_dict(self.state)
            program.carried = {name: value.to(where) for name, value in self.carried.items()}
            (seen,) = program.apply([as_examples(x, where)])
        return Seen(seen.features.cpu(), seen.outputs.cpu())


def train(cell: Cell, domains: Domains, device: str) -> Model:
    """Trains a cell on arrays in memory, like a suite's run on these rows in this order.

    Raises:
        ValueError: training diverged, needs more steps than it has, or needs more memory than this machine has.
        BenchError: a component breaks its contract.
    """
    where = torch.device(device)
    with _settings(cell, where):
        components = Components.of(cell, registry())
        _check_width(components)
        run = _run(cell, components, domains, where)
        _check_steps(run)
        program = Single(run, where)
        (trained,) = fit([run], program)
    if trained.diverged_in is not None:
        what = f"training diverged: a risk, gap or weight was not finite in epoch {trained.diverged_in}"
        raise ValueError(f"{what}; scale X, or choose a lower learning rate or mu")
    return Model(
        cell=cell,
        components=run.components,
        empty=domains.emptied,
        state={name: value.detach().cpu().clone() for name, value in program.modules.state_dict().items()},
        carried={name: value.cpu() for name, value in program.carried.items()},
        weights=_weights(run, trained),
    )


def _check_width(components: Components) -> None:
    """Refuses rows so wide that the network's weights do not fit into memory, before anything is allocated."""
    dataset = components.dataset
    if dataset.input.shape[0] < _WIDE:
        return
    with torch.device("meta"):
        network = components.backbone.build(dataset.task, components.input)
    weights = sum(value.nbytes for part in (network.features, network.predictor) for value in part.parameters())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if weights * _COPIES > memory:
        columns, needed = dataset.input.shape[0], weights * _COPIES / 2**30
        raise ValueError(
            f"X: {columns} columns need {needed:.0f} GiB to train this network, and this machine has "
            f"{memory / 2**30:.0f}; keep fewer columns, or set narrower `hidden` layers"
        )


def _check_steps(run: Run) -> None:
    """Refuses fewer training steps than the scheme has stages, such as those of SHOT on few rows."""
    stages, steps = len(run.components.scheme.stages), run.all_steps
    if steps < stages:
        raise ValueError(
            f"epochs: scheme {run.components.scheme.name!r} trains in {stages} stages, and these rows in batches of "
            f"`batch` make {steps} step{'' if steps == 1 else 's'}; set more epochs, or a smaller batch"
        )


@contextmanager
def _settings(cell: Cell, device: torch.device) -> Iterator[None]:
    """The process settings of a run. Undoes changes that a component makes to others, and warns."""
    with restored() as changed, deterministic(device), products(cell.training.precision, device):
        yield
    if changed:
        warnings.warn(f"a component changed {' and '.join(changed)}; it was put back", stacklevel=4)


def _run(cell: Cell, components: Components, domains: Domains, device: torch.device) -> Run:
    return Run(cell, components, _prepared(components.dataset.task, domains, device))


def _prepared(task: Task, domains: Domains, device: torch.device) -> Prepared:
    """The data of a split that trains on every row, without labels of the target: `Domains` has none."""
    sources = domains.sources
    parts = [as_examples(x, device) for x in (*(x for x, _ in sources.values()), domains.target)]
    rows = torch.split(torch.arange(sum(map(len, parts)), device=device), [len(part) for part in parts])
    y = [_tensor(task, labels, device) for _, labels in sources.values()]
    none = _tensor(task, np.full(len(parts[-1]), -1 if task.kind == "classification" else np.nan), device)
    training = TrainingData(
        concatenate(parts), torch.cat([*y, none]), dict(zip((*sources, TARGET), rows, strict=True)), TARGET
    )
    return Prepared(
        task=task,
        bags=not isinstance(domains.target, np.ndarray),
        training=training,
        held_out=(),
        test=Labelled(parts[-1][:0], none[:0]),
        _target_labels=none,
        tested_in_training=False,
    )


def _tensor(task: Task, labels: Array, device: torch.device) -> Tensor:
    kind = np.int64 if task.kind == "classification" else np.float32
    return torch.from_numpy(labels.astype(kind)).to(device)


def _weights(run: Run, trained: Trained) -> dict[str, float]:
    """The weight alpha of each source; pooled sources share their group's weight in proportion to their sizes."""
    found = dict.fromkeys(run.cell.sources, 0.0)
    for group, sizes, alpha in zip(run.groups, run.sizes, trained.trace.weights.tolist(), strict=True):
        for source, size in zip(group, sizes, strict=True):
            found[source] += alpha * size / sum(sizes)
    return found
