"""A toy world: small synthetic inputs and components for contracts and for tests of plugins."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from msda_bench.api import (
    Aggregate,
    Aggregator,
    Backbone,
    Dataset,
    Discrepancy,
    DomainData,
    Files,
    InputSpec,
    Network,
    Task,
    Tested,
    ValidationView,
    Validator,
    component,
)
from msda_bench.engine.evaluate import test_outcome, view_of
from msda_bench.functional import SparseRows, uniform

CLASSIFICATION = Task("classification", 3)
REGRESSION = Task("regression")
TASKS = (CLASSIFICATION, REGRESSION)
WIDTH = 6
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
    return (drawn * task.classes).long() if task.kind == "classification" else drawn


def bag(rows: int, width: int, stream: int = 0) -> SparseRows:
    """Sparse rows that store about a third of the columns; row 0 is empty, like a review without known words."""
    dense = numbers(rows, width, stream=stream)
    stored = dense < 1 / 3
    stored[0] = False
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), stored.sum(1).cumsum(0)])
    return SparseRows(stored.nonzero()[:, 1], (3 * dense)[stored], offsets, width)


def metric_view(task: Task, rows: int = 12, *, perfect: bool = False, one_label: bool = False) -> Tested:
    """The test results of a poor or a perfect model, with random labels or only one."""
    y = labels(task, rows, stream=40)
    y = y[:1].expand(rows).clone() if one_label else y
    if task.kind == "classification":
        outputs = 9.0 * one_hot(y, task.classes) if perfect else numbers(rows, task.classes, stream=41)
    else:
        outputs = (y if perfect else y + numbers(rows, stream=41)).unsqueeze(-1)
    counted = test_outcome(outputs, task, y)
    return view_of(counted, outputs, y) if counted is not None else Tested(rows)


def validation_view(task: Task, sources: int = 2, rows: int = 6, width: int = 4) -> ValidationView:
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

    def build(self, task: Task, input: InputSpec, files: Files | None = None) -> Network:  # noqa: ARG002 - reads none
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

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return ((source.mean(1) - target.mean(0)) * self.weight).square().sum(-1)


@component
class WeightedMeans(Discrepancy):
    """Squared distance between the mean features, with a trained weight for each feature."""

    name = "toy_weighted_means"
    symmetric = True

    def build(self, feature_dim: int, k: int) -> nn.Module:  # noqa: ARG002 - k follows from the features
        """A module with one weight per feature."""
        return _Weighted(feature_dim)


class _Zeros(nn.Module):
    def forward(self, source: Tensor, target: Tensor | None) -> Tensor:  # noqa: ARG002 - the contract's signature
        return source.new_zeros(len(source))


@component
class Blind(Discrepancy):
    """Gaps of zero that ignore the target, like `none`."""

    name = "toy_blind"
    uses_target = False

    def build(self, feature_dim: int, k: int) -> nn.Module:  # noqa: ARG002 - it has no weights
        """A module without parameters."""
        return _Zeros()


@component
class Mean(Aggregator):
    """Equal weights."""

    name = "toy_mean"

    def __call__(self, risks: Tensor, gaps: Tensor, mu: float | Tensor, state: Tensor) -> Aggregate:
        """The mean of risks + mu gaps."""
        return Aggregate((risks + mu * gaps).mean(), torch.full_like(risks, 1 / len(risks)), state)
