"""The default scheme, which weighs sources; all of them as one; a term of predictions added; and the oracle."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch import Tensor

from msda_bench.api import AddedLater, Batch, Group, Parts, Pass, Phase, Positive, Rate, Scheme, Step, component
from msda_bench_builtin.schemes.mdd import ramp_share, scaled_gradient


@component
class Adapt(Scheme):
    """Each source on its own against the target; the aggregator weighs them (DARN, MDAN).

    One step draws a batch of every source and of the target, and minimises aggregate(risks, gaps) (Wen et al. 2020,
    figure 2).

    Parameters:
        weigh: "gap", mu weighs the gap, and so the critic's gradient, too; "features", mu weighs only what reaches the
            features, as a gradient reversal with the coefficient mu does, so that critics learn at the network's own
            rate (Ganin et al. 2016; TLL). Without critics both are the same.
        ramp: the features get (1 - exp(-ramp t)) / (1 + exp(-ramp t)) of the discrepancy's gradient, t the share of
            training done; 10 in Ganin et al. 2016. null for 1 throughout.
    """

    name = "adapt"

    weigh: Annotated[Literal["gap", "features"], AddedLater()] = "gap"
    ramp: Annotated[Positive | None, AddedLater()] = None

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The aggregated objective."""
        return self.aggregated(parts, batch, parts.forward(batch), state)

    def aggregated(self, parts: Parts, batch: Batch, seen: Pass, state: Tensor) -> Step:
        """The aggregated objective of a batch that has passed through the network."""
        gaps = self.gaps(parts, batch, seen)
        objective, weights, state = parts.aggregate(seen.risks, gaps, state)
        return Step(objective, seen.risks, gaps, weights, state)

    def gaps(self, parts: Parts, batch: Batch, seen: Pass) -> Tensor:
        """The discrepancy's gaps (k,); `weigh` and `ramp` change their gradients, not their values."""
        if self.weigh == "gap" and self.ramp is None:
            return torch.as_tensor(parts.critic(seen.source, seen.target))
        share = torch.as_tensor(ramp_share(self.ramp, batch.progress))
        if self.weigh == "gap":
            return torch.as_tensor(parts.critic(*_scaled(seen, share)))
        mu = torch.as_tensor(parts.mu, dtype=seen.source.dtype, device=seen.source.device)
        gaps = parts.critic(*_scaled(seen, mu * share))
        # The aggregator multiplies by mu again.
        return scaled_gradient(gaps, 1 / mu.clamp(min=torch.finfo(mu.dtype).tiny))


def _scaled(seen: Pass, share: Tensor) -> tuple[Tensor, Tensor | None]:
    source = scaled_gradient(seen.source, share)
    return source, None if seen.target is None else scaled_gradient(seen.target, share)


@component
class Pooled(Adapt):
    """All sources merged into one of k*m examples: SRC without a discrepancy, DANN with d_A.

    With `training: {epoch: equal}` it takes as many steps as every other method, each on k batches. With `epoch:
    scheme` an epoch is a pass over the pool, floor(k*m / batch) steps, as in the authors' code; its own `epoch: domain`
    makes that a pass over as many examples as one source has, the steps of other methods.
    """

    name = "pooled"

    epoch: Literal["pool", "domain"] = "pool"

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """One group of all sources."""
        return (sources,)

    def steps(self, sizes: tuple[tuple[int, ...], ...], batch: int) -> int:
        """floor(examples / batch), of the pool or of its largest domain."""
        counted = sizes if self.epoch == "pool" else tuple((max(group),) for group in sizes)
        return super().steps(counted, batch)


def class_confusion(outputs: Tensor, temperature: float | Tensor) -> Tensor:
    """The confusion of classes in a batch of logits (n, classes) (Jin et al. 2020).

    With p = softmax(outputs / temperature), examples have weights w = 1 + exp(-entropy(p)), scaled to mean 1 and
    without gradient; classes j and l are confused by C_jl = sum w p_j p_l, each row divided by its sum. Returns the
    mean over the classes of the sum off the diagonal, in [0, 1].
    """
    logs = torch.log_softmax(outputs / temperature, dim=-1)
    p = logs.exp()
    sure = 1 + torch.exp((p * logs).sum(-1)).detach()
    confusion = (p * (sure / sure.mean()).unsqueeze(-1)).T @ p
    shares = confusion / confusion.sum(1, keepdim=True).clamp(min=torch.finfo(p.dtype).tiny)
    apart: Tensor = (shares.sum() - shares.diagonal().sum()) / len(shares)
    return apart


def negative_nuclear_norm(outputs: Tensor) -> Tensor:
    """Minus the sum of the singular values of the probabilities (n, classes), over n (Cui et al. 2020)."""
    norm: Tensor = torch.linalg.svdvals(torch.softmax(outputs, dim=-1)).sum()
    return -norm / len(outputs)


def mean_entropy(outputs: Tensor) -> Tensor:
    """The mean entropy of the predictions, in nats (Grandvalet and Bengio 2005)."""
    logs = torch.log_softmax(outputs, dim=-1)
    return -(logs.exp() * logs).sum(-1).mean()


@component
class Regularised(Adapt):
    """MCC, BNM or entropy minimisation: as `adapt`, plus a regulariser of the outputs for the target.

    Adds `weight` times a function of the target batch's outputs to the aggregated risks and gaps, with any discrepancy
    and aggregator; with the discrepancy `none` and equal weights it is the method of its name on all sources together.
    The record's gaps are the discrepancy's.

    Parameters:
        by: "mcc", minimum class confusion (Jin, Wang, Long, Wang 2020, "Minimum Class Confusion for Versatile Domain
            Adaptation"); "bnm", batch nuclear-norm maximisation (Cui et al. 2020, "Towards Discriminability and
            Diversity"), norm / batch as in the paper, where the authors' code has norm / min(batch, classes), so that
            their weight 1 is batch / min(batch, classes) here, 10 for two classes and a batch of 20;
            "entropy", its minimisation (Grandvalet and Bengio 2005, "Semi-supervised Learning by Entropy
            Minimization").
        weight: 1 for the authors of MCC and BNM.
        temperature: only for MCC; 2.5 in the authors' code for objects.
    """

    name = "regularised"
    needs_target = True
    tasks = ("classification",)
    stacked = ("weight", "temperature")

    by: Literal["mcc", "bnm", "entropy"] = "mcc"
    weight: Positive = 1.0
    temperature: Positive = 2.5

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The aggregated objective and the regulariser."""
        seen = parts.forward(batch)
        assert seen.target is not None  # noqa: S101 - needs_target holds
        step = self.aggregated(parts, batch, seen, state)
        outputs = parts.predictor(seen.target)
        return step._replace(objective=step.objective + self.weight * self._regulariser(outputs))

    def _regulariser(self, outputs: Tensor) -> Tensor:
        match self.by:
            case "mcc":
                return class_confusion(outputs, self.temperature)
            case "bnm":
                return negative_nuclear_norm(outputs)
            case "entropy":
                return mean_entropy(outputs)


@component
class TargetOnly(Scheme):
    """TAR: trains only on the target's labelled training examples; an oracle, to be marked `reference: true`.

    Parameters:
        hold_out: the share of these examples that it does not train on but is scored on, `target_accuracy`, which then
            selects its settings in place of the test.
    """

    name = "target_only"
    uses_discrepancy = False
    uses_mu = False
    needs_target = False
    needs_target_labels = True

    hold_out: Annotated[Rate, AddedLater()] = 0.0

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """Only the target."""
        return ((target,),)

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The mean risk."""
        risks = parts.forward(batch).risks
        return Step(risks.mean(), risks)


@component
class Joint(TargetOnly):
    """JOINT: the sources and the target's labelled training examples together; an oracle, as TAR is.

    What full knowledge of the labels is worth beside the sources. One model for all domains: each gives a batch in
    every step, whatever its size, and all batches weigh 1 / (k + 1), so the target counts as one of k + 1 domains. With
    `training: {epoch: equal}` it takes as many steps as every other method.
    """

    name = "joint"

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """Each source, and the target."""
        return (*((source,) for source in sources), (target,))
