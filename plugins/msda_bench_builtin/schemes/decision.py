"""Networks of several sources, adapted without the sources."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from msda_bench.api import (
    Batch,
    Carried,
    Discrepancy,
    Examples,
    Network,
    NonNegative,
    Parts,
    Phase,
    Positive,
    Rate,
    Stage,
    Step,
    TargetPass,
    component,
)
from msda_bench_builtin.discrepancies.mmd import squared_distances
from msda_bench_builtin.schemes.batches import source_risks
from msda_bench_builtin.schemes.ensemble import Ensemble, all_answers, own_outputs, predicted
from msda_bench_builtin.schemes.source_free import SourceFree, centres, nearest, one_hot, points


class _Weights(nn.Module):
    """Trained weights of k sources, equal at first: sigmoid(w) / sum sigmoid(w)."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(k))

    def forward(self) -> Tensor:
        """(k,), with sum 1."""
        shares = torch.sigmoid(self.w)
        return shares / shares.sum()


@component
class Decision(SourceFree):
    """DECISION, without the sources in its second stage: a network of each source, with weights fitted to the target.

    Ahmed et al. 2021 ("Unsupervised Multi-source Domain Adaptation Without Access to Source Data"). The
    first stage trains a network on each source, with smoothed labels. The second sees only the unlabelled target. It
    keeps the predictors and trains the features and the weights alpha of the networks, with o = sum of alpha_i o_i, o_i
    the logits of network i, on

        mean H(p) - H(mean p) + beta CE(p, label),  p = softmax(o)

    Pseudo-labels are computed at the start of each epoch: each network's class centres in its own features, as in
    `shot`; then the class whose alpha-weighted centres are nearest to the alpha-weighted features. The test uses o.

    The record's weights are alpha. The authors' code draws the initial alpha at random, while it is equal here, and
    labels by each step's alpha, while here it is that of the epoch's start.

    Parameters:
        beta: weight of the pseudo-labels; 0.3 in the paper, and 0.1 for digits.
        smoothing: share of a label that is spread over all classes; 0.1 in the paper, as for SHOT.
        adapt: steps of the second stage for each of the first; 15 epochs to 30 for digits in the paper.

    A step costs k passes through the features, and memory holds k networks.
    """

    name = "decision"
    source_phase = Phase("sources")
    target_phase = Phase("target", ("features", "critic"))

    beta: NonNegative = 0.3
    smoothing: Rate = 0.1
    adapt: Positive = 0.5

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """The networks of all sources but the first, whose network is the run's own; and alpha."""
        others = Ensemble().build(network, k, discrepancy).named_children()
        return nn.ModuleDict({**dict(others), "weights": _Weights(k)})

    def at_epoch(
        self,
        parts: Parts,
        target: TargetPass,
        carried: Carried,
        stage: Stage,
    ) -> Carried:
        """The pseudo-labels now."""
        alpha = parts.critic("weights")
        features = target.features.reshape(len(target.features), len(alpha), -1).unbind(1)
        outputs = [predicted(parts, i, own) for i, own in enumerate(features)]
        return {"labels": joint_labels(features, outputs, alpha)}

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The stage's objective; the sum of what each network minimises in the first."""
        if phase.name == "sources":
            return self._on_sources(parts, batch)
        fixed = {name: weight for name, weight in parts.weights.items() if _of_predictor(name)}
        parts = parts.with_weights(fixed)
        _, outputs, alpha = _joint(parts, batch.x)
        return Step(self.of_target(parts, outputs, batch), weights=alpha.detach())

    def predict(self, parts: Parts, x: Examples, carried: Carried) -> tuple[Tensor, Tensor]:
        """The features of all networks side by side (n, k * d), and their alpha-weighted outputs."""
        features, outputs, _ = _joint(parts, x)
        return features, outputs

    def _on_sources(self, parts: Parts, batch: Batch) -> Step:
        outputs = torch.cat(own_outputs(parts, batch))
        mean = functional.cross_entropy(outputs, batch.y.reshape(-1), label_smoothing=self.smoothing)
        return Step(len(batch.y) * mean, source_risks(parts, outputs, batch))


def _joint(parts: Parts, x: Examples) -> tuple[Tensor, Tensor, Tensor]:
    """All networks' features side by side (n, k * d), their logits as one (n, classes), and alpha (k,)."""
    alpha = parts.critic("weights")
    features, outputs = all_answers(parts, x, len(alpha))
    return torch.cat(features.unbind(), 1), torch.einsum("k,knc->nc", alpha, outputs), alpha


def _of_predictor(name: str) -> bool:
    """Whether it names a weight of a network's predictor: predictor.* or critic.0.predictor.*."""
    return name.removeprefix("critic.").lstrip("0123456789.").startswith("predictor.")


def joint_labels(features: Sequence[Tensor], outputs: Sequence[Tensor], alpha: Tensor) -> Tensor:
    """A class for each of n examples, from the centres of k networks together.

    Args:
        features: of each network, (n, d).
        outputs: the logits of each network, (n, classes).
        alpha: the weights of the networks, (k,).

    Returns:
        (n,) int64. Classes that no network predicts for any example are skipped.
    """
    rows = []
    middles = []
    there = []
    for own, logits in zip(map(points, features), outputs, strict=True):
        any_class = torch.ones_like(logits[0], dtype=torch.bool)
        shares = one_hot(nearest(own, centres(own, logits.softmax(-1)), any_class), logits)
        rows.append(own)
        middles.append(centres(own, shares))
        there.append(shares.any(0))
    joint = torch.einsum("k,knd->nd", alpha, torch.stack(rows))
    centre = torch.einsum("k,knd->nd", alpha, torch.stack(middles))
    is_there = torch.stack(there).any(0)
    far = squared_distances(joint, centre).masked_fill(~is_there, torch.inf)
    return far.argmin(-1)
