"""Self-supervised implicit alignment."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from msda_bench.api import (
    Batch,
    Carried,
    Discrepancy,
    Examples,
    Network,
    Parts,
    Phase,
    Positive,
    Scheme,
    Sizes,
    Stage,
    Step,
    TargetPass,
    component,
    fresh_copy,
)
from msda_bench_builtin.schemes.batches import losses_of_each
from msda_bench_builtin.schemes.ensemble import Each, mean_answer

_SOURCES = Phase("sources", ("features", "critic"))
_TARGET = Phase("target", ("features", "critic"))


@component
class Simpal(Scheme):
    """SImpAl: k classifiers learn all sources, then the target examples on which all of them agree.

    Venkat et al. 2020 ("Your Classifier can Secretly Suffice Multi-Source Domain Adaptation"). As many classifiers as
    sources, on shared features, differ only in their initial weights: each learns every source. A first stage sees only
    the sources. In the second, updates on the sources and on the target alternate; the target's loss is that of all
    classifiers on the pseudo-labels of the examples on which they agree. Nothing else aligns the domains. The test
    averages the classifiers' probabilities.

    Agreement and pseudo-labels are computed at the start of each epoch; the authors' code does so whenever all examples
    agreed on have been seen. There a batch of the target has only such examples; here it has some, over which its loss
    is the mean. A step of the second stage updates twice, with one optimiser while the authors have two. The network's
    own predictor is unused.

    Parameters:
        adapt: steps of the second stage for each of the first; 1 for Office-Home in the authors' code, and 1 to 3.2
            elsewhere.
    """

    name = "simpal"
    uses_discrepancy = False
    uses_mu = False
    needs_target = True
    tasks = ("classification",)

    adapt: Positive = 1.0

    @property
    def stages(self) -> tuple[Stage, ...]:
        """A warm start on the sources, then both."""
        start = Stage("start", sees=("sources",), phases=(_SOURCES,))
        return (start, Stage("adapt", share=self.adapt, phases=(_SOURCES, _TARGET)))

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """The k classifiers."""
        return Each(fresh_copy(network.predictor) for _ in range(k))

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """In the second stage a pseudo-label of each target example, and whether all classifiers agree on it."""
        if stage.name == "start":
            return {}
        return {"labels": torch.zeros(sizes.target, dtype=torch.int64), "agreed": torch.zeros(sizes.target)}

    def at_epoch(
        self,
        parts: Parts,
        target: TargetPass,
        carried: Carried,
        stage: Stage,
    ) -> Carried:
        """The classifiers' current predictions."""
        answers = parts.critic(target.features).argmax(-1)
        agreed = (answers == answers[0]).all(0)
        return {"labels": answers[0], "agreed": agreed.to(target.features.dtype)}

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """A phase's objective; the record's gaps are the shares of target examples on which the classifiers differ.

        The risks are each source's, a mean over the classifiers.
        """
        k, size = batch.y.shape
        features = parts.features(batch.x)
        outputs = parts.critic(features)
        losses = losses_of_each(parts, outputs[:, : k * size], batch.y.reshape(-1))
        risks = losses.view(-1, k, size).mean((0, 2))
        objective = risks.mean()
        gaps = torch.zeros_like(risks)
        if "agreed" in batch.carried:
            agreed = batch.carried["agreed"][batch.target_rows]
            labels = batch.carried["labels"][batch.target_rows]
            gaps = gaps + (1 - agreed.mean())
        if phase.name == _TARGET.name:
            losses = losses_of_each(parts, outputs[:, k * size :], labels).mean(0)
            objective = (losses * agreed).sum() / agreed.sum().clamp(min=1)
        return Step(objective, risks, gaps)

    def predict(self, parts: Parts, x: Examples, carried: Carried) -> tuple[Tensor, Tensor]:
        """Features, and the mean of the classifiers."""
        features = parts.features(x)
        return features, mean_answer(parts.critic(features))
