"""Source hypothesis transfer."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from msda_bench.api import (
    Batch,
    Carried,
    Group,
    NonNegative,
    Parts,
    Phase,
    Positive,
    Rate,
    Scheme,
    Sizes,
    Stage,
    Step,
    TargetPass,
    component,
)
from msda_bench_builtin.schemes.source_free import information, pseudo_labels, sources_then_target

_SOURCES = Phase("sources", ("features", "predictor"))
_TARGET = Phase("target", ("features",))


@component
class Shot(Scheme):
    """SHOT, without the sources in its second stage: features that fit the target to the sources' classifier.

    Liang et al. 2020 ("Do We Really Need to Access the Source Data? Source Hypothesis Transfer for Unsupervised Domain
    Adaptation"). The first stage trains on all sources together, with labels smoothed by `smoothing`. The
    second sees only the unlabelled target, keeps the predictor and trains the features on

        mean H(p) - H(mean p) + beta CE(p, label)

    Predictions p should be confident individually and diverse together, and agree with pseudo-labels, which are
    computed at the start of each epoch by the nearest class centre in the features (`pseudo_labels`).

    With several sources the authors adapt a network of each and add up their scores, as `decision` does. Their network
    has a bottleneck with batch-norm and a weight-normalised predictor; here it is the suite's.

    Parameters:
        beta: weight of the pseudo-labels; 0.3 in the paper, and 0.1 for digits.
        smoothing: share of a label that is spread over all classes; 0.1 in the paper.
        adapt: steps of the second stage for each of the first; 15 epochs to 30 for digits in the paper.
    """

    name = "shot"
    uses_discrepancy = False
    uses_mu = False
    needs_target = True
    tasks = ("classification",)
    stacked = ("beta",)

    beta: NonNegative = 0.3
    smoothing: Rate = 0.1
    adapt: Positive = 0.5

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The sources, then only the target."""
        return sources_then_target(self.adapt, _SOURCES, _TARGET)

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """One group of all sources."""
        return (sources,)

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """In the second stage a pseudo-label of each target example."""
        return {} if stage.name == "start" else {"labels": torch.zeros(sizes.target, dtype=torch.int64)}

    def at_epoch(self, parts: Parts, target: TargetPass, carried: Carried, stage: Stage) -> Carried:
        """The pseudo-labels now."""
        return {"labels": pseudo_labels(target.features, target.outputs)}

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The stage's objective; the second stage has no values for the sources."""
        outputs = parts.predictor(parts.features(batch.x))
        if phase.name == _SOURCES.name:
            labels = batch.y.reshape(-1)
            objective = functional.cross_entropy(outputs, labels, label_smoothing=self.smoothing)
            risks = parts.loss(outputs, labels).mean().unsqueeze(0)
            return Step(objective, risks)
        taught = parts.loss(outputs, batch.carried["labels"][batch.target_rows]).mean()
        return Step(information(outputs) + self.beta * taught)
