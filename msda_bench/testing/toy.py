"""A toy world for contracts and for tests of plugins: small inputs and components, single steps and short runs."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from msda_bench.api import (
    Aggregate,
    Aggregator,
    Backbone,
    Batch,
    Dataset,
    Discrepancy,
    DomainData,
    Files,
    Group,
    InputSpec,
    Network,
    Parts,
    Phase,
    Scheme,
    Sizes,
    Stage,
    Step,
    Task,
    ValidationView,
    Validator,
    component,
)
from msda_bench.component.parts import Modules
from msda_bench.functional import SparseRows, uniform
from msda_bench.testing.broken import require

CLASSIFICATION = Task("classification", 3)
REGRESSION = Task("regression")
TASKS = (CLASSIFICATION, REGRESSION)
WIDTH = 6
SOURCES: Group = ("north", "east", "south")
TARGET = "west"
_SIZE = 6
_EXAMPLES = 60


def numbers(*shape: int, stream: int = 0) -> Tensor:
    """Float32 numbers in [0, 1) that depend only on the shape and the stream; uses no generator."""
    return uniform(torch.tensor([stream, 1], dtype=torch.int32), shape)


def features(*shape: int, stream: int = 0) -> Tensor:
    """Float32 features in [-1, 1) that require a gradient."""
    return (2 * numbers(*shape, stream=stream) - 1).requires_grad_()


def labels(task: Task, *shape: int, stream: int = 0) -> Tensor:
    """Labels of the task: int64 classes, or float32 numbers in [0, 1)."""
    drawn = numbers(*shape, stream=stream)
    return (drawn * task.classes).long() if task.has_classes else drawn


def bag(rows: int, width: int, stream: int = 0) -> SparseRows:
    """Sparse rows that store about a third of the columns; row 0 is empty, like a review without known words."""
    dense = numbers(rows, width, stream=stream)
    stored = dense < 1 / 3
    stored[0] = False
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), stored.sum(1).cumsum(0)])
    return SparseRows(stored.nonzero()[:, 1], (3 * dense)[stored], offsets, width)


def validation_view(
    task: Task,
    sources: int = 2,
    rows: int = 6,
    width: int = 4,
) -> ValidationView:
    """What a validator might see of a poor model."""
    counts = [rows + i for i in range(sources)]
    outputs = numbers(rows, task.outputs, stream=31)
    return ValidationView(
        task=task,
        source_features=tuple(numbers(n, width, stream=n) for n in counts),
        source_outputs=tuple(numbers(n, task.outputs, stream=10 + n) for n in counts),
        source_labels=tuple(labels(task, n, stream=20 + n) for n in counts),
        target_features=numbers(rows, width, stream=30),
        target_outputs=outputs,
        mix=lambda first, second, share: share * outputs[first] + (1 - share) * outputs[second],
    )


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seeds torch's global generator during the block, as the engine does to build modules."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@component
class Blobs(Dataset):
    """Three domains of random vectors; `poison` inverts the labels of the last."""

    name = "toy_blobs"
    domains = ("one", "two", "aim")
    input = InputSpec((WIDTH,))

    train: int = 40
    regression: bool = False
    poison: bool = False

    @property
    def task(self) -> Task:
        """Classification with two classes, or regression."""
        return REGRESSION if self.regression else Task("classification", 2)

    def load(self, domain: str, files: Files) -> DomainData:  # noqa: ARG002 - generated
        """Random numbers from the domain's own stream; the label is the sign or the value of a sum."""
        place = self.domains.index(domain)
        x = np.random.Generator(np.random.Philox(key=place)).random((_EXAMPLES, WIDTH), np.float32) + 0.2 * place
        truth = x[:, :3].sum(1) - x[:, 3:].sum(1)
        y = truth if self.regression else (truth > 0).astype(np.int64)
        if self.poison and domain == "aim":
            y = -y if self.regression else 1 - y
        return DomainData(x, y)


@component
class OneLayer(Backbone):
    """One hidden layer."""

    name = "toy_one_layer"
    capturable = True

    def build(
        self,
        task: Task,
        input: InputSpec,
        files: Files | None = None,  # noqa: ARG002 - reads none
    ) -> Network:
        """A linear layer with tanh, and a linear predictor."""
        return Network(nn.Sequential(nn.Linear(input.shape[0], 4), nn.Tanh()), nn.Linear(4, task.outputs), 4)


@component
class MeanOutput(Validator):
    """The mean output on the target, which differs if the trained weights differ."""

    name = "toy_mean_output"

    def score(self, view: ValidationView) -> float:
        """The mean."""
        return view.target_outputs.double().mean().item()


class _Weighted(nn.Module):
    def __init__(self, feature_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(feature_dim) / math.sqrt(feature_dim))

    def forward(self, source: Tensor, target: Tensor | None) -> Tensor:
        mean = source.mean(1)
        return ((mean - (mean if target is None else target.mean(0))) * self.weight).square().sum(-1)


@component
class WeightedMeans(Discrepancy):
    """Squared distance between the mean features, with a trained weight for each feature."""

    name = "toy_weighted_means"
    capturable = True
    symmetric = True

    def build(self, feature_dim: int, k: int) -> nn.Module:  # noqa: ARG002 - k follows from the features
        """A module with one weight per feature."""
        return _Weighted(feature_dim)


@component
class Blind(WeightedMeans):
    """Gaps of zero that ignore the target, like `none`."""

    name = "toy_blind"
    symmetric = uses_target = False


@component
class Mean(Aggregator):
    """Equal weights."""

    name = "toy_mean"

    def __call__(
        self,
        risks: Tensor,
        gaps: Tensor,
        mu: float | Tensor,
        state: Tensor,
    ) -> Aggregate:
        """The mean of risks + mu gaps."""
        return Aggregate((risks + mu * gaps).mean(), torch.full_like(risks, 1 / len(risks)), state)


class ToyRun:
    """A run before its first step, with modules and a batch drawn as the engine draws them.

    Attributes:
        modules: features, predictor and critic, by name.
        parts: what the scheme sees of them.
    """

    def __init__(
        self,
        scheme: Scheme,
        discrepancy: Discrepancy,
        aggregator: Aggregator,
        mu: float,
        sources: Group,
        task: Task,
    ) -> None:
        self.scheme = scheme
        self.aggregator = aggregator
        self.mu = mu
        self.task = task
        self.groups = scheme.groups(sources, TARGET)
        k = len(self.groups)
        used = discrepancy if scheme.uses_discrepancy else None  # a scheme with its own critic builds none
        with seeded(0):
            network = OneLayer().build(task, InputSpec((WIDTH,)))
            critic = scheme.build(network, k, used)
        self.modules = nn.ModuleDict({"features": network.features, "predictor": network.predictor, "critic": critic})
        named = Modules(dict(self.modules.items()))
        functions: dict[str, Any] = named.functions()
        self.parts = Parts(
            **functions,
            loss=task.rules.losses,
            aggregate=self._aggregate,
            mu=mu,
            modules=named,
        )
        self.sizes = Sizes((_SIZE,) * k, _SIZE, network.feature_dim, task.outputs)
        self._drawn = k + scheme.draws_target(used)
        self.state = aggregator.start(torch.full((k,), float(_SIZE)))

    def batch(self, phase: Phase) -> Batch:
        """What the phase's stage may see of a batch, and the tensors that the run carries at its start."""
        k = len(self.groups)
        stages = self.scheme.stages
        stage = next((stage for stage in stages if phase in stage.phases), stages[0])
        x = numbers(self._drawn * _SIZE, WIDTH)
        y = labels(self.task, k, _SIZE, stream=50)
        if "sources" not in stage.sees:
            x = x[k * _SIZE :]
            y = y[:0]
        elif "target" not in stage.sees:
            x = x[: k * _SIZE]
        key = torch.tensor([0, 7], dtype=torch.int32)
        rows = torch.arange(len(x)) % _SIZE
        return Batch(x, y, key, torch.tensor(0.5), rows, self.carried(stage))

    def carried(self, stage: Stage) -> dict[str, Tensor]:
        """The tensors that the run carries at the start of the stage."""
        carried = self.scheme.carry(self.parts, self.sizes, stage)
        return {name: value.detach().clone() for name, value in carried.items()}

    def step(self, phase: Phase, batch: Batch | None = None) -> Step:
        """One step, with the phase's own batch when None."""
        return Step(*self.scheme.step(self.parts, batch or self.batch(phase), self.state, phase))

    def _aggregate(self, risks: Tensor, gaps: Tensor, state: Tensor) -> Aggregate:
        who = f"scheme {self.scheme.name!r}"
        require(self.scheme.uses_discrepancy, f"{who} takes no aggregator, so it must not call one")
        return self.aggregator(risks, gaps, self.mu, state)


def gpu() -> torch.device | None:
    """A GPU, or None where PyTorch finds none."""
    return torch.device("cuda") if torch.cuda.is_available() else None
