"""MDD, and gradients that grow in the course of training (Ganin et al. 2016)."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from torch import Tensor, nn

from msda_bench.api import (
    AddedLater,
    Batch,
    Carried,
    Count,
    Discrepancy,
    Network,
    Parts,
    Phase,
    Positive,
    Scheme,
    Sizes,
    Stage,
    Step,
    component,
    fresh_copy,
)
from msda_bench_builtin.schemes.batches import source_risks


def ramp_share(ramp: float | None, progress: Tensor | float) -> Tensor | float:
    """(1 - exp(-r t)) / (1 + exp(-r t)) at the share t of training done; 1 throughout without a ramp."""
    return 1.0 if ramp is None else torch.tanh(torch.as_tensor(ramp / 2 * progress))


def scaled_gradient(rows: Tensor, factor: Tensor | float) -> Tensor:
    """The same values, with their gradient multiplied by a factor; a negative one reverses it."""
    fixed = rows.detach()
    return fixed + factor * (rows - fixed)


@component
class Mdd(Scheme):
    """MDD: classifiers that agree with the network on a source but not on the target, and features that prevent this.

    Zhang et al. 2019 ("Bridging Theory and Algorithm for Domain Adaptation", the combined cross-entropy loss). With h
    the class that the network predicts for an example, and p the probabilities of source i's adversarial classifier,
    that classifier raises the gap

        d_i = margin mean_source log p_h + mean_target log(1 - p_h) + c

    at full strength, and the features lower mean r_i + mu ramp mean d_i. No gradient passes through h. The constant
    c = (margin + 1) log(margin + 1) - margin log margin makes the gap of two equal domains 0 under the best classifier,
    p_h = margin / (margin + 1), their equilibrium; until a classifier is good the gap may be
    negative, and it is never above c. Zhang et al. have one source. Here each has an adversarial classifier, a copy of
    the predictor with its own weights; the authors' predictor has a hidden layer, ours is the backbone's.

    Parameters:
        margin: gamma, the weight of the source; 4 in the authors' code for Office-31, 2 for Office-Home.
        ramp: features get (1 - exp(-ramp t)) / (1 + exp(-ramp t)) of the gradient, t the share of training done. The
            authors' tanh(step / 2000) in 100000 steps is 100. null for 1 throughout.
        ramp_steps: tanh(step / ramp_steps) instead of `ramp`, with the step counted from 0; 2000 in the authors' code.

    mu is 0.1 in the authors' code.
    """

    name = "mdd"
    uses_discrepancy = False
    needs_target = True
    tasks = ("classification",)

    margin: Positive = 4.0
    ramp: Positive | None = 100.0
    ramp_steps: Annotated[Count | None, AddedLater()] = None

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """The number of steps taken, for `ramp_steps`."""
        return {} if self.ramp_steps is None else {"step": torch.zeros(())}

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """The adversarial classifiers."""
        return nn.ModuleList([fresh_copy(network.predictor) for _ in range(k)])

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The objective; the record's weights are equal."""
        k, size = batch.y.shape
        features = parts.features(batch.x)
        outputs = parts.predictor(features)
        risks = source_risks(parts, outputs, batch)
        # The classifiers minimise the sum of their losses, the features maximise mu times the mean.
        share = ramp_share(self.ramp, batch.progress)
        carried = {}
        if self.ramp_steps is not None:
            share = torch.tanh(batch.carried["step"] / self.ramp_steps)
            carried = {"step": batch.carried["step"] + 1}
        rows = scaled_gradient(features, -parts.mu * share / k)
        classes = outputs.argmax(-1)
        losses = torch.stack([self._loss(parts, i, rows, classes, size) for i in range(k)])
        floor = (self.margin + 1) * math.log(self.margin + 1) - self.margin * math.log(self.margin)
        return Step(risks.mean() + losses.sum(), risks, floor - losses, carried=carried)

    def _loss(self, parts: Parts, source: int, features: Tensor, classes: Tensor, size: int) -> Tensor:
        """Gamma * mean -log p_h on the source, plus mean -log(1 - p_h) on the target, whose rows are the last."""
        own = slice(source * size, (source + 1) * size)
        rows = torch.cat([features[own], features[-size:]])
        chosen = torch.cat([classes[own], classes[-size:]]).unsqueeze(-1)
        logs = torch.log_softmax(parts.critic(str(source), rows), dim=-1)
        agrees = logs.gather(-1, chosen).squeeze(-1)
        is_chosen = torch.arange(logs.shape[-1], device=logs.device) == chosen
        differs = logs.masked_fill(is_chosen, -math.inf).logsumexp(-1)  # log(1 - p_h), exact where p_h is nearly 1
        return -self.margin * agrees[:size].mean() - differs[size:].mean()
