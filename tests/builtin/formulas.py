"""For the tests of formulas: a run of a small float64 network, and a comparison of gradients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from msda_bench.api import (
    Aggregator,
    Batch,
    Discrepancy,
    Network,
    Parts,
    Phase,
    Scheme,
    Sizes,
    SourcePass,
    Stage,
    Step,
    TargetPass,
)
from msda_bench.component.parts import Modules
from msda_bench_builtin.aggregators import Uniform

K, B, D, CLASSES = 3, 4, 5, 3


class SmallRun:
    """Features 6 - 5, three classes, k sources of four examples each, and a target."""

    def __init__(
        self,
        scheme: Scheme,
        discrepancy: Discrepancy | None = None,
        aggregator: Aggregator | None = None,
        k: int = K,
        mu: float = 0.3,
    ) -> None:
        generator = torch.Generator().manual_seed(0)
        torch.manual_seed(0)
        self.scheme, self.aggregator, self.mu = scheme, aggregator or Uniform(), mu
        features = nn.Sequential(nn.Linear(6, D), nn.Tanh())
        network = Network(features, nn.Linear(D, CLASSES), D)
        critic = scheme.build(network, k, discrepancy)
        self.modules = nn.ModuleDict({"features": features, "predictor": network.predictor, "critic": critic}).double()
        self.x = torch.randn((k + 1) * B, 6, dtype=torch.float64, generator=generator)
        self.batch = Batch(self.x, torch.randint(0, CLASSES, (k, B), generator=generator), torch.tensor([11, 22]).int())
        self.state = self.aggregator.start(torch.full((k,), float(B))).double()

    @property
    def parts(self) -> Parts:
        """The parts that the scheme receives."""
        modules = Modules(dict(self.modules.items()))
        functions: dict[str, Any] = modules.functions()
        return Parts(
            **functions,
            loss=lambda outputs, labels: nn.functional.cross_entropy(outputs, labels, reduction="none"),
            aggregate=lambda risks, gaps, state: self.aggregator(risks, gaps, self.mu, state),
            mu=self.mu,
            modules=modules,
        )

    def step(self, phase: Phase) -> Step:
        """A step's result; if it leaves out the weights they are equal, as in the record of a run's first step."""
        taken, k = self.scheme.step(self.parts, self.batch, self.state, phase), len(self.batch.y)
        return taken._replace(weights=torch.ones(k).double() / k) if k and not len(taken.weights) else taken

    def enter(self, stage: Stage) -> None:
        """Restricts the batch to what a stage may see, with the tensors carried at its start; the target has 4 rows."""
        k, rows = len(self.batch.y), torch.arange(len(self.x)) % B
        x, y = self.x, self.batch.y
        if "sources" not in stage.sees:
            x, y, rows = x[k * B :], y[:0], rows[k * B :]
        elif "target" not in stage.sees:
            x, rows = x[: k * B], rows[: k * B]
        carried = self.scheme.carry(self.parts, Sizes((B,) * k, B, D, CLASSES), stage)
        if "sources" in stage.sees:
            with torch.no_grad():
                given = self.batch.y.flatten(), torch.arange(k).repeat_interleave(B), self.batch.key
                seen = SourcePass(*self.scheme.predict(self.parts, self.x[: k * B], carried), *given)
            carried = {**carried, **self.scheme.at_stage(self.parts, seen, carried, stage)}
        if "target" in stage.sees:
            with torch.no_grad():
                target = TargetPass(*self.scheme.predict(self.parts, self.x[k * B :], carried), self.batch.key)
            carried = {**carried, **self.scheme.at_epoch(self.parts, target, carried, stage)}
        self.batch = self.batch._replace(x=x, y=y, rows=rows, carried=carried)

    def domain(self, i: int) -> Tensor:
        """Features of a domain; the target is the last."""
        found: Tensor = self.modules["features"](self.x[i * B : (i + 1) * B])
        return found

    def trained(self, phase: Phase) -> list[nn.Parameter]:
        """The parameters that the phase trains."""
        return [value for name in phase.trains for value in self.modules[name].parameters()]

    def risk(self, i: int, head: str = "predictor") -> Tensor:
        """The mean loss on a source."""
        return nn.functional.cross_entropy(self.modules[head](self.domain(i)), self.batch.y[i])

    def descend(self, phase: Phase, rate: float) -> None:
        """One step of gradient descent on the phase's parameters."""
        trained = self.trained(phase)
        gradients = torch.autograd.grad(self.step(phase).objective, trained)
        with torch.no_grad():
            for value, gradient in zip(trained, gradients, strict=True):
                value.sub_(rate * gradient)


def same_gradient(found: Tensor, expected: Tensor, of: Iterable[Tensor], atol: float = 1e-8) -> None:
    """Asserts that two objectives, which need not be equal, have equal gradients with respect to each tensor."""
    tensors = list(of)
    one, other = (
        torch.autograd.grad(objective, tensors, retain_graph=True, materialize_grads=True)
        for objective in (found, expected)
    )
    for mine, theirs in zip(one, other, strict=True):
        assert torch.allclose(mine, theirs, atol=atol)
