"""A short run of a scheme by the training core itself, on toy domains whose target labels may be poisoned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from torch import nn

from msda_bench.api import (
    Aggregator,
    Array,
    Backbone,
    Component,
    Dataset,
    Discrepancy,
    DomainData,
    File,
    Files,
    InputSpec,
    Network,
    Scheme,
    Task,
    ValidationView,
    Validator,
    component,
)
from msda_bench.plugins import Entry, Registry
from msda_bench.store.record import Record
from msda_bench.suite.cell import Cell, Ref, Training

_WIDTH = 6
_EXAMPLES = 60


@component
class Blobs(Dataset):
    """Three domains of random vectors; labels of the last are inverted where `poison` says so."""

    name = "toy_blobs"

    train: int = 40
    regression: bool = False
    poison: bool = False

    @property
    def domains(self) -> tuple[str, ...]:
        """The target is the last."""
        return ("one", "two", "aim")

    @property
    def task(self) -> Task:
        """Two classes, or a number."""
        return Task("regression") if self.regression else Task("classification", 2)

    @property
    def input(self) -> InputSpec:
        """Dense vectors."""
        return InputSpec((_WIDTH,))

    def load(self, domain: str, files: Files) -> DomainData:  # noqa: ARG002 - made on the spot
        """Numbers of the domain's own stream, labelled by the sign, or the value, of a sum."""
        place = self.domains.index(domain)
        x = np.random.Generator(np.random.Philox(key=place)).random((_EXAMPLES, _WIDTH), np.float32) + 0.2 * place
        truth = x[:, :3].sum(1) - x[:, 3:].sum(1)
        y = truth if self.regression else (truth > 0).astype(np.int64)
        if self.poison and domain == "aim":
            y = -y if self.regression else 1 - y
        return DomainData(x, y)


@component
class OneLayer(Backbone):
    """One hidden layer."""

    name = "toy_one_layer"

    def build(self, task: Task, input: InputSpec) -> Network:
        """A linear layer with tanh, and a linear predictor."""
        return Network(nn.Sequential(nn.Linear(input.shape[0], 4), nn.Tanh()), nn.Linear(4, task.outputs), 4)


@component
class MeanOutput(Validator):
    """The mean output on the target: differs where the trained weights do."""

    name = "toy_mean_output"

    def score(self, view: ValidationView) -> float:
        """The mean."""
        return view.target_outputs.double().mean().item()


class _NoFiles:
    def path(self, file: File) -> Path:
        raise AssertionError(file.path)

    def derived(self, name: str, make: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:  # noqa: ARG002
        return make()


def trained(scheme: Scheme, discrepancy: Discrepancy, aggregator: Aggregator, mu: float, blobs: Blobs) -> Record:
    """The record of a run of two epochs of three steps, on the CPU."""
    from msda_bench.engine.train import Trainer

    parts: list[Component] = [blobs, OneLayer(), scheme, MeanOutput()]
    parts += [discrepancy, aggregator] if scheme.uses_discrepancy else []
    registry = Registry([Entry(part.kind, type(part), "msda-bench-testing", "0") for part in parts])
    refs = {part.kind: _ref(part) for part in parts}
    cell = Cell(
        dataset=refs["dataset"],
        fingerprint=blobs.fingerprint(),
        target="aim",
        sources=("one", "two"),
        backbone=refs["backbone"],
        scheme=refs["scheme"],
        discrepancy=refs.get("discrepancy"),
        aggregator=refs.get("aggregator"),
        mu=mu,
        training=Training(2, 10, "adam", {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}, steps=3),
        validators=(refs["validator"],),
        seed=0,
    )
    (record,) = Trainer(registry, _NoFiles(), "cpu").train([cell])
    return record


def _ref(part: Component) -> Ref:
    return Ref(part.kind, part.name, part.version, "msda-bench-testing", part.identity())
