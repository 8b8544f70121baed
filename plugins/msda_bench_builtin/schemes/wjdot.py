"""Weighted joint distribution optimal transport."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from msda_bench.api import (
    AddedLater,
    Batch,
    Carried,
    Count,
    Discrepancy,
    Network,
    NonNegative,
    Parts,
    Phase,
    Positive,
    Scheme,
    Sizes,
    SourcePass,
    Stage,
    Step,
    TargetPass,
    component,
    fresh_copy,
)
from msda_bench.functional import uniform
from msda_bench_builtin.aggregators.darn import sparsemax
from msda_bench_builtin.discrepancies.mmd import squared_distances
from msda_bench_builtin.optional import installed
from msda_bench_builtin.schemes.batches import source_risks
from msda_bench_builtin.schemes.ensemble import Each

_ITERATIONS = 10_000_000
"""Pivots of the network simplex at most; it ends with the optimum long before."""


@component
class Wjdot(Scheme):
    """WJDOT: the classifier and the sources' weights with the cheapest transport to the target.

    Turrisi et al. 2022, "Multi-source domain adaptation via weighted joint distributions optimal transport". In the
    stage "embedding" a classifier for each source trains the features on its source (their multi-task learning); the
    network's predictor learns from all sources at the same time, so that it need not start at random. In the stage
    "transport" the features are fixed, and the predictor f and weights alpha on the simplex minimise the cost of moving
    sum_s alpha_s S_s to the target's examples x' labelled by f(x'), where moving (x, y) to x' costs

        beta |x - x'|^2 / mean |x - x'|^2 + loss(f(x'), y).

    f takes a gradient step with the plan held fixed; alpha takes one of length `rate` along the sources' mean
    potentials, the gradient of the cost, and is projected onto the simplex.

    As the authors' code, each step solves the exact transport of training examples by POT (`ot.emd`), here of
    `examples` of each domain. That does not stack. Their features keep their own units; their code has
    |x - x'|^2 + beta^2 |y - f(x')|^2 as the cost, with sigmoid outputs, and starts f at random.

    Parameters:
        beta: weight of the features, in units of the mean squared distance; ours.
        rate: step of alpha; in the authors' code the network's learning rate, 0.01.
        embedding: steps of the first stage for each of the second; ours.
        plan: "exact", of examples drawn once; "entropic", of each step's batches, in torch, which stacks.
        examples: of each domain in the exact plan at most, drawn at random once; the authors take all.
        blur: entropic regularisation, as a share of the mean cost between the batches.
        iterations: updates of the potentials of the entropic plan.
    """

    name = "wjdot"
    uses_discrepancy = False
    uses_mu = False
    needs_target = True
    stacked = ("beta", "rate")

    beta: NonNegative = 1.0
    rate: Positive = 0.01
    embedding: Positive = 3.0
    blur: Positive = 0.05
    iterations: Count = 50
    plan: Annotated[Literal["exact", "entropic"], AddedLater("entropic")] = "exact"
    examples: Annotated[Count, AddedLater()] = 400

    def __post_init__(self) -> None:
        """Refuses to be exact without POT."""
        if self.plan == "exact" and not installed("ot"):
            raise ValueError("needs POT; install it: pip install '.[transport]' in the clone, or set plan: entropic")

    @property
    def stackable(self) -> bool:  # type: ignore[override]
        """Whether it stacks: POT solves one plan at a time."""
        return self.plan == "entropic"

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The embedding, without the target; then the predictor and the weights."""
        return (
            Stage("embedding", self.embedding, ("sources",), (Phase("embedding"),)),
            Stage("transport", phases=(Phase("transport", ("predictor",)),)),
        )

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """A classifier for each source."""
        return Each(fresh_copy(network.predictor) for _ in range(k))

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """Equal weights of the sources, for the second stage; for the exact plan, room for the transported examples."""
        if stage.name != "transport":
            return {}
        k = len(sizes.groups)
        equal = {"alpha": torch.full((k,), 1 / k)}
        if self.plan == "entropic":
            return equal
        counts = [min(self.examples, size) for size in sizes.groups]
        groups = torch.arange(k).repeat_interleave(torch.tensor(counts))
        return equal | {
            "source": torch.zeros(len(groups), sizes.features),
            "labels": torch.zeros(len(groups)),  # classes, too, as float32
            "shares": torch.nn.functional.one_hot(groups, k) / torch.tensor(counts).float(),
            "target": torch.zeros(min(self.examples, sizes.target), sizes.features),
            "key": torch.zeros(2, dtype=torch.int32),
        }

    def at_stage(
        self,
        parts: Parts,
        sources: SourcePass,
        carried: Carried,
        stage: Stage,
    ) -> Carried:
        """Features and labels of the examples to be transported, whose number `carry` has chosen."""
        if "source" not in carried:
            return {}
        order = drawn(sources.key, len(sources.y))
        sizes = [int(n) for n in (carried["shares"] > 0).sum(0)]
        groups = sources.groups[order]
        rows = torch.cat([order[groups == group][:n] for group, n in enumerate(sizes)])
        labels = sources.y[rows].to(carried["labels"].dtype)
        return {"source": sources.features[rows], "labels": labels, "key": sources.key}

    def at_epoch(
        self,
        parts: Parts,
        target: TargetPass,
        carried: Carried,
        stage: Stage,
    ) -> Carried:
        """Features of the target's examples to be transported; the same ones in each epoch."""
        if "target" not in carried:
            return {}
        order = drawn(carried["key"], len(target.features))
        return {"target": target.features[order[: len(carried["target"])]]}

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """A stage's objective; the second's recorded gaps are the gradient of the cost in alpha, of mean 0."""
        k, size = batch.y.shape
        if phase.name == "embedding":
            features = parts.features(batch.x)
            outputs = parts.critic(features.view(k, size, -1)).flatten(0, 1)
            risks = source_risks(parts, outputs, batch)
            shared = parts.loss(parts.predictor(features.detach()), batch.y.flatten()).mean()
            return Step(risks.mean() + shared, risks)
        if self.plan == "exact":
            return self._exact(parts, batch)
        with torch.no_grad():
            features = parts.features(batch.x)
            source = features[: k * size]
            target = features[k * size :]
            risks = source_risks(parts, parts.predictor(source), batch)
        cost = self._features_cost(source, target) + losses(parts, parts.predictor(target), batch.y.flatten())
        alpha = batch.carried["alpha"]
        weights = (alpha / size).repeat_interleave(size)
        plan, potentials = transport(cost.detach(), weights, self.blur, self.iterations)
        gaps = potentials.view(k, size).mean(1)
        return self._moved((plan * cost).sum(), risks, gaps, alpha)

    def _exact(self, parts: Parts, batch: Batch) -> Step:
        """The transport stage's step with the exact plan of the examples carried."""
        source, labels, shares, target, alpha = (
            batch.carried[name] for name in ("source", "labels", "shares", "target", "alpha")
        )
        labels = labels.to(batch.y.dtype)
        outputs = parts.predictor(target)
        with torch.no_grad():
            risks = parts.loss(parts.predictor(source), labels) @ shares
            kinds, kind = torch.unique(labels, return_inverse=True)
            cost = self._features_cost(source, target) + losses(parts, outputs, kinds)[kind]
            plan, potentials = exact_transport(cost, shares @ alpha)
        # At most n + m - 1 pairs have a share of the exact plan; only their losses need a gradient.
        rows, columns = (plan > 0).nonzero(as_tuple=True)
        moved = plan[rows, columns] @ parts.loss(outputs[columns], labels[rows])
        fixed = (plan * self._features_cost(source, target)).sum()
        return self._moved(moved + fixed, risks, potentials @ shares, alpha)

    def _moved(self, objective: Tensor, risks: Tensor, gaps: Tensor, alpha: Tensor) -> Step:
        """A step with alpha moved against the gradient of the cost."""
        gaps = gaps - gaps.mean()
        moved = sparsemax(alpha - self.rate * gaps)
        return Step(objective, risks, gaps, alpha, carried={"alpha": moved})

    def _features_cost(self, source: Tensor, target: Tensor) -> Tensor:
        squares = squared_distances(source, target)
        return self.beta * squares / squares.mean().clamp(min=torch.finfo(squares.dtype).tiny)


def losses(parts: Parts, outputs: Tensor, y: Tensor) -> Tensor:
    """The loss of each output (m, outputs) for each label (n,): (n, m)."""
    return parts.loss(outputs.repeat(len(y), 1), y.repeat_interleave(len(outputs))).view(len(y), -1)


def drawn(key: Tensor, n: int) -> Tensor:
    """The places of n examples in random order."""
    return uniform(key, (n,)).argsort(stable=True)


def exact_transport(cost: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Exact optimal transport of n weighted points to m equal ones, by POT's network simplex.

    Args:
        cost: (n, m); where it is not finite, plan and potentials are NaN.
        weights: (n,), with sum 1; some may be 0.

    Returns:
        The plan (n, m), and the potentials (n,) of the points: a gradient of the cost in their weights, up to a
        constant.
    """
    if not cost.isfinite().all():
        return torch.full_like(cost, torch.nan), torch.full_like(weights, torch.nan)
    import ot

    shares = weights.double().cpu().numpy()
    costs = cost.double().cpu().numpy()
    plan, log = ot.emd(shares / shares.sum(), [], costs, numItermax=_ITERATIONS, log=True)
    return torch.from_numpy(plan).to(cost), torch.from_numpy(log["u"]).to(cost)


def transport(cost: Tensor, weights: Tensor, blur: float, iterations: int) -> tuple[Tensor, Tensor]:
    """Entropic optimal transport of n weighted points to m equal ones.

    Args:
        cost: (n, m).
        weights: (n,), with sum 1; some may be 0.
        blur: the regularisation, as a share of the mean cost.
        iterations: averaged updates of both potentials, before a last one that gives each target its full weight.

    Returns:
        The plan (n, m), and the potentials (n,) of the points: the gradient of the cost in their weights, up to a
        constant.
    """
    epsilon = blur * cost.mean().clamp(min=torch.finfo(cost.dtype).tiny)
    scaled = cost / epsilon
    logs = weights.log()
    shares = torch.full_like(scaled[0], 1 / len(scaled[0])).log()
    u = torch.zeros_like(scaled[:, 0])
    v = torch.zeros_like(scaled[0])
    for _ in range(iterations):
        of_points = torch.logsumexp(v + shares - scaled, 1)
        of_targets = torch.logsumexp((u + logs) - scaled.T, 1)
        u = (u - of_points) / 2
        v = (v - of_targets) / 2
    v = -torch.logsumexp((u + logs) - scaled.T, 1)
    return torch.exp((u + logs).unsqueeze(1) + v + shares - scaled), epsilon * u
