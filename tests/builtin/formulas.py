"""For the tests of formulas: a run of a small network, and comparisons of its steps with plain loops."""

import pytest
import torch
from torch import nn

from msda_bench.api import Batch, Network, Parts, Sizes, SourcePass, TargetPass
from msda_bench.component.parts import Modules
from msda_bench_builtin.aggregators import Uniform

K, B, D, CLASSES = 3, 4, 5, 3


class SmallRun:
    """Features 6 - 5, three classes, k sources of four examples each, and a target; in the scheme's first stage."""

    def __init__(self, scheme, discrepancy=None, aggregator=None, k=K, mu=0.3, progress=0.0):
        torch.manual_seed(0)
        self.x = torch.randn((k + 1) * B, 6)
        self.y = torch.randint(0, CLASSES, (k, B))
        torch.manual_seed(0)
        self.scheme, self.aggregator, self.mu, self.k = scheme, aggregator or Uniform(), mu, k
        features = nn.Sequential(nn.Linear(6, D), nn.Tanh())
        network = Network(features, nn.Linear(D, CLASSES), D)
        critic = scheme.build(network, k, discrepancy)
        self.modules = nn.ModuleDict({"features": features, "predictor": network.predictor, "critic": critic})
        self.drawn = (k + scheme.draws_target(discrepancy)) * B
        self.batch = Batch(self.x, self.y, torch.tensor([11, 22]).int(), torch.tensor(progress))
        self.state = self.aggregator.start(torch.full((k,), float(B)))
        self.enter(0)

    @property
    def parts(self):
        """The parts that the scheme receives."""
        modules = Modules(dict(self.modules.items()))
        return Parts(
            **modules.functions(),
            loss=lambda outputs, labels: nn.functional.cross_entropy(outputs, labels, reduction="none"),
            aggregate=lambda risks, gaps, state: self.aggregator(risks, gaps, self.mu, state),
            mu=self.mu,
            modules=modules,
        )

    def enter(self, number):
        """Begins a stage: the batch is what it may see, with the tensors carried at its start."""
        self.stage = stage = self.scheme.stages[number]
        sources = "sources" in stage.sees
        shown = slice(0 if sources else self.k * B, self.drawn if "target" in stage.sees else self.k * B)
        carried = self.scheme.carry(self.parts, Sizes((B,) * self.k, B, D, CLASSES), stage)
        with torch.no_grad():
            if sources:
                given = self.y.flatten(), torch.arange(self.k).repeat_interleave(B), self.batch.key
                seen = SourcePass(*self.scheme.predict(self.parts, self.x[: self.k * B], carried), *given)
                carried = {**carried, **self.scheme.at_stage(self.parts, seen, carried, stage)}
            if "target" in stage.sees:
                target = TargetPass(*self.scheme.predict(self.parts, self.x[-B:], carried), self.batch.key)
                carried = {**carried, **self.scheme.at_epoch(self.parts, target, carried, stage)}
        x, y, rows = self.x[shown], self.y if sources else self.y[:0], (torch.arange(len(self.x)) % B)[shown]
        self.batch = self.batch._replace(x=x, y=y, rows=rows, carried=carried)

    def predict(self, x):
        """Features and outputs."""
        return self.scheme.predict(self.parts, x, self.batch.carried)

    def carry(self, carried):
        """Replaces some of the tensors that are carried."""
        self.batch = self.batch._replace(carried={**self.batch.carried, **carried})

    def step(self, phase=None):
        """A step of a phase, the stage's first by default."""
        return self.scheme.step(self.parts, self.batch, self.state, phase or self.stage.phases[0])

    def domain(self, i):
        """Features of a domain; the target is the last."""
        return self.modules["features"](self.x[i * B : (i + 1) * B])

    def domains(self):
        """Features of the sources, and of the target."""
        return torch.stack([self.domain(i) for i in range(self.k)]), self.domain(self.k)

    def trained(self, phase=None):
        """The parameters that a phase trains."""
        return [value for name in (phase or self.stage.phases[0]).trains for value in self.modules[name].parameters()]

    def network(self):
        """The parameters of all but the critic."""
        return [*self.modules["features"].parameters(), *self.modules["predictor"].parameters()]

    def risks(self, head="predictor"):
        """The mean loss on each source."""
        outputs = [self.modules[head](self.domain(i)) for i in range(self.k)]
        return torch.stack([nn.functional.cross_entropy(*pair) for pair in zip(outputs, self.y, strict=True)])

    def descend(self, rate):
        """One step of gradient descent on the parameters that the phase trains."""
        trained = self.trained()
        gradients = torch.autograd.grad(self.step().objective, trained)
        with torch.no_grad():
            for value, gradient in zip(trained, gradients, strict=True):
                value.sub_(rate * gradient)


def mmd(one, other, kernels):
    """Pair by pair: the sum of Gaussian kernels, with bandwidths around the mean distance of two rows."""
    rows = [*one, *other]
    squares = [[((x - y) ** 2).sum() for y in rows] for x in rows]
    n = len(rows)
    width = sum(value for line in squares for value in line).detach() / (n * n - n) / 2 ** (kernels // 2)
    total = 0.0
    for i in range(n):
        for j in range(n):
            sign = 1 if (i < len(one)) == (j < len(one)) else -1
            total = total + sign * sum(torch.exp(-squares[i][j] / (width * 2**e)) for e in range(kernels))
    return total / len(one) ** 2


def moment_distance(one, other, orders, *, centred=False):
    """One order and one feature at a time."""
    total = 0.0
    for order in range(1, orders + 1):
        squares = 0.0
        for feature in range(one.shape[1]):
            columns = [domain[:, feature] for domain in (one, other)]
            if centred and order > 1:
                columns = [column - column.mean() for column in columns]
            first, second = [(column**order).mean() for column in columns]
            squares = squares + (first - second) ** 2
        total = total + squares.sqrt()
    return total


def takes(run, expected, phase=None, *, of=None, value=True, **record):
    """Asserts a step's objective, its gradients and what it records, and gives the step.

    Args:
        run: the run.
        expected: the objective.
        phase: of the step; the stage's first by default.
        of: tensors with respect to which the gradients are equal; by default all that the phase trains.
        value: whether the objectives are equal, too, which those of games need not be.
        record: values of the step by name, a number for each source.
    """
    taken = run.step(phase)
    for name, numbers in record.items():
        assert getattr(taken, name).tolist() == pytest.approx([torch.as_tensor(one).item() for one in numbers]), name
    if value:
        assert taken.objective.item() == pytest.approx(expected.item())
    same_gradient(taken.objective, expected, run.trained(phase) if of is None else of)
    return taken


def same_gradient(found, expected, of, atol=1e-8):
    """Asserts that two objectives, which need not be equal, have equal gradients with respect to each tensor."""
    tensors = list(of)
    one, other = (
        torch.autograd.grad(objective, tensors, retain_graph=True, materialize_grads=True)
        for objective in (found, expected)
    )
    torch.testing.assert_close(one, other, rtol=1e-5, atol=atol)
