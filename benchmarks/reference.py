"""What the engine is measured against: DARN trained in the plain way in which research code is written.

One run at a time. In each step batches are drawn in numpy and turned into tensors, each domain goes through the network
by itself, sharpmax bisects with a host sync in each iteration, all weights get a dense update, and the losses are read
back for the log. The mathematics is that of the engine's DARN (paper, equations 4 and 6), with the convention of the
authors' code for the sign of the gap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
MU = 0.01


class Domain(NamedTuple):
    """Examples x (n, *shape) float32 and labels y (n,) int64, dense and on the host."""

    x: Array
    y: Array


@dataclass(frozen=True)
class Settings:
    """Of the paper's protocol; `gamma` is 1 / tau, and `device` where torch trains."""

    batch: int
    gamma: float
    device: str


class Networks(NamedTuple):
    """Features, a label predictor on them, and a function that makes one critic."""

    features: nn.Module
    predictor: nn.Module
    make_critic: Callable[[], nn.Module]


class ReverseGradient(torch.autograd.Function):
    """The identity, whose gradient changes sign."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ARG004 - the signature is torch's
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ARG004
        return -gradient


class Darn(nn.Module):
    """One network for all domains and one critic a source."""

    def __init__(self, networks: Networks, sources: int) -> None:
        super().__init__()
        self.features, self.predictor = networks.features, networks.predictor
        self.critics = nn.ModuleList(networks.make_critic() for _ in range(sources))

    def forward(self, sources: Sequence[tuple[Tensor, Tensor]], target: Tensor) -> tuple[Tensor, Tensor]:
        """Risks (k,) and gaps (k,) of the sources' batches (x, y) and the target's batch."""
        target_features = self.features(target)
        risks, gaps = [], []
        for (x, y), critic in zip(sources, self.critics, strict=True):
            features = self.features(x)
            risks.append(nn.functional.cross_entropy(self.predictor(features), y))
            gaps.append(_confusion(critic, features, target_features))
        return torch.stack(risks), torch.stack(gaps)


def _confusion(critic: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    """The critic's logistic loss; critics lower it and features, behind the reversal, raise it."""
    losses = []
    for features, label in ((source, torch.ones), (target, torch.zeros)):
        logits = critic(ReverseGradient.apply(features))  # type: ignore[no-untyped-call]
        losses.append(
            nn.functional.binary_cross_entropy_with_logits(logits, label(len(features), 1, device=features.device))
        )
    return losses[0] + losses[1]


def bisected_sharpmax(z: Tensor, tolerance: float = 1e-6) -> Tensor:
    """Sharpmax of scores (k,) by bisection for the threshold, looking at the norm on the host each time."""
    low, high = z.max() - 1, z.max()
    while (high - low).item() > tolerance * max(1.0, abs(high.item())):
        middle = (low + high) / 2
        if torch.linalg.vector_norm((z - middle).clamp(min=0)).item() > 1:
            low = middle
        else:
            high = middle
    above = (z - low).clamp(min=0)
    return above / above.sum()


def train(
    networks: Networks, sources: Sequence[Domain], target: Domain, settings: Settings, steps: int, seed: int
) -> list[list[float]]:
    """Trains DARN from fresh weights; the log: for each step the loss, the k risks and the k weights.

    Args:
        networks: with fresh weights; they are trained.
        sources: the k labelled domains.
        target: its labels are not looked at.
        settings: the protocol.
        steps: number of steps.
        seed: of numpy's draws; torch's generator is the caller's affair.
    """
    model = Darn(networks, len(sources)).train().to(settings.device)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0, rho=0.9, eps=1e-6)
    generator = np.random.default_rng(seed)
    log = []
    for _ in range(steps):
        batches = [_draw(domain, settings, generator) for domain in sources]
        unlabelled, _ = _draw(target, settings, generator)
        risks, gaps = model(batches, unlabelled)
        combined = risks + MU * gaps
        weights = bisected_sharpmax(-settings.gamma * combined.detach())
        loss = (weights * combined).sum() + torch.linalg.vector_norm(weights) / settings.gamma
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.append([value.item() for value in (loss, *risks, *weights)])
    return log


def _draw(domain: Domain, settings: Settings, generator: np.random.Generator) -> tuple[Tensor, Tensor]:
    rows = generator.integers(0, len(domain.y), settings.batch)
    x, y = torch.tensor(domain.x[rows]), torch.tensor(domain.y[rows])
    return x.to(settings.device), y.to(settings.device)


def table_networks(columns: int, hidden: int = 64, dropout: float = 0.2) -> Networks:
    """One hidden layer with dropout before it, as the suites of tables have it; predictor and critics are linear."""
    features = nn.Sequential(nn.Dropout(dropout), nn.Linear(columns, hidden), nn.ReLU())
    return Networks(features, nn.Linear(hidden, 2), lambda: nn.Linear(hidden, 1))


def fonts_networks(pixels: int, classes: int) -> Networks:
    """Widths 128 and 64 with batch norm and dropout, and a predictor with weight norm, as in fonts.yaml."""
    features = nn.Sequential(
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(pixels, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Linear(128, 64),
        nn.BatchNorm1d(64),
    )
    return Networks(features, weight_norm(nn.Linear(64, classes)), lambda: nn.Linear(64, 1))


def adam(model: nn.Module) -> torch.optim.Optimizer:
    """That of table.yaml, fused."""
    return torch.optim.Adam(model.parameters(), lr=0.003, fused=True)


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    """That of fonts.yaml, fused."""
    return torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True, weight_decay=0.001, fused=True)


def train_briefly(
    networks: Networks,
    make_optimizer: Callable[[nn.Module], torch.optim.Optimizer],
    sources: Sequence[Domain],
    target: Domain | None,
    batch: int,
    steps: int,
    mu: float,
) -> float:
    """Trains a small network in the shortest way that torch has; the last step's loss.

    Args:
        networks: with fresh weights; they are trained.
        make_optimizer: `adam` or `sgd`.
        sources: the k labelled domains.
        target: DARN's; None for the sources pooled, a batch of each.
        batch: examples of each domain.
        steps: number of steps.
        mu: of DARN.
    """
    model = Darn(networks, len(sources) if target else 0).train()
    inputs = [torch.from_numpy(domain.x) for domain in (*sources, *([target] if target else []))]
    labels = [torch.from_numpy(domain.y) for domain in sources]
    optimizer = make_optimizer(model)
    for _ in range(steps):
        rows = [torch.randint(len(x), (batch,)) for x in inputs]
        features = model.features(torch.cat([x[some] for x, some in zip(inputs, rows, strict=True)]))
        y = torch.cat([y[some] for y, some in zip(labels, rows, strict=False)])
        losses = nn.functional.cross_entropy(model.predictor(features[: len(y)]), y, reduction="none")
        loss = losses.mean()
        if target:
            loss = _darn_loss(model, losses.view(len(sources), -1).mean(1), features.view(len(inputs), batch, -1), mu)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def _darn_loss(model: Darn, risks: Tensor, features: Tensor, mu: float) -> Tensor:
    gaps = torch.stack(
        [_confusion(critic, one, features[-1]) for critic, one in zip(model.critics, features, strict=False)]
    )
    combined = risks + mu * gaps
    weights = bisected_sharpmax(-combined.detach())
    return (weights * combined).sum() + torch.linalg.vector_norm(weights)


def amazon_networks(dropout: float = 0.7) -> Networks:
    """5000-1000-500-100 with dropout on each layer's input; predictor and critics are linear (paper, section 5.1)."""
    layers: list[nn.Module] = []
    for narrow, wide in pairwise((5000, 1000, 500, 100)):
        layers += [nn.Dropout(dropout), nn.Linear(narrow, wide), nn.ReLU()]
    return Networks(nn.Sequential(*layers), nn.Linear(100, 2), lambda: nn.Linear(100, 1))


def digits_networks() -> Networks:
    """Convolutions 3-64-128-256, predictor 2304-2048-1024-10, critics 2304-2048-2048-1 (paper, appendix)."""
    blocks: list[nn.Module] = []
    for narrow, wide in pairwise((3, 64, 128, 256)):
        blocks += [nn.Conv2d(narrow, wide, 3), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True)]
    features = nn.Sequential(*blocks, nn.Flatten())
    return Networks(features, _perceptron(2304, 2048, 1024, 10), lambda: _perceptron(2304, 2048, 2048, 1))


def _perceptron(*widths: int) -> nn.Module:
    layers = [layer for narrow, wide in pairwise(widths) for layer in (nn.Linear(narrow, wide), nn.ReLU())]
    return nn.Sequential(*layers[:-1])
