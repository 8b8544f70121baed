"""Adaptation that does not see the sources; SHOT."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

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

_SMALL = 1e-5


def information(outputs: Tensor) -> Tensor:
    """Mean entropy of the predictions minus the entropy of their mean, of logits (n, classes), in nats.

    Low if predictions are confident and, together, of all classes: information maximisation (Liang et al. 2020).
    Logarithms of p + 1e-5, as in the authors' code.
    """
    answers = outputs.softmax(-1)
    return _entropy(answers).mean() - _entropy(answers.mean(0))


def _entropy(answers: Tensor) -> Tensor:
    return -(answers * (answers + _SMALL).log()).sum(-1)


def points(features: Tensor) -> Tensor:
    """Features (n, d) with a 1 appended, of unit length (n, d + 1)."""
    return functional.normalize(torch.cat([features, features.new_ones(len(features), 1)], 1), dim=1)


def centres(rows: Tensor, shares: Tensor) -> Tensor:
    """Each class's mean (classes, d) of rows (n, d), by their shares (n, classes) in it; 0 for a class without rows."""
    return shares.T @ rows / (shares.sum(0).unsqueeze(1) + 1e-8)


def nearest(rows: Tensor, middles: Tensor, there: Tensor) -> Tensor:
    """The class of the nearest centre by cosine (n,), among the classes that are `there` (classes,)."""
    close = rows @ functional.normalize(middles, dim=1).T
    return close.masked_fill(~there, -torch.inf).argmax(-1)


def one_hot(labels: Tensor, like: Tensor) -> Tensor:
    """Labels (n,) as one-hot rows (n, classes), of the dtype of `like`."""
    return functional.one_hot(labels, like.shape[-1]).to(like)


def pseudo_labels(features: Tensor, outputs: Tensor, rounds: int = 2) -> Tensor:
    """A class for each of n examples, by the nearest class centre (Liang et al. 2020).

    Centres weigh the examples by their probabilities in the first round, and by the found labels in later ones. Classes
    without examples are skipped.

    Args:
        features: (n, d).
        outputs: logits (n, classes).
        rounds: how often centres and labels are computed.

    Returns:
        (n,) int64.
    """
    rows = points(features)
    shares = outputs.softmax(-1)
    labels = outputs.argmax(-1)
    for _ in range(rounds):
        there = one_hot(labels, outputs).any(0)
        labels = nearest(rows, centres(rows, shares), there)
        shares = one_hot(labels, outputs)
    return labels


class SourceFree(Scheme, ABC):
    """A scheme whose first stage sees only the sources and whose second sees only the unlabelled target.

    Attributes:
        source_phase: of the first stage.
        target_phase: of the second.
        smoothing: share of a label that is spread over all classes in the first stage; a parameter of each scheme.
        adapt: steps of the second stage for each of the first; a parameter of each scheme.
        beta: a weight in the second stage; a parameter of each scheme.
    """

    uses_discrepancy = False
    uses_mu = False
    needs_target = True
    tasks = ("classification",)
    stacked = ("beta",)
    source_phase: ClassVar[Phase] = Phase("sources", ("features", "predictor"))
    target_phase: ClassVar[Phase]

    smoothing: float
    adapt: float
    beta: float

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The sources, then only the target."""
        start = Stage("start", sees=("sources",), phases=(self.source_phase,))
        adapt = Stage("adapt", share=self.adapt, sees=("target",), phases=(self.target_phase,))
        return (start, adapt)

    def carry(self, parts: Parts, sizes: Sizes, stage: Stage) -> Carried:
        """In the second stage a pseudo-label of each target example."""
        return {} if stage.name == "start" else {"labels": torch.zeros(sizes.target, dtype=torch.int64)}

    def of_sources(self, parts: Parts, outputs: Tensor, batch: Batch) -> Step:
        """A step of the first stage, on all sources together."""
        labels = batch.y.reshape(-1)
        objective = functional.cross_entropy(outputs, labels, label_smoothing=self.smoothing)
        return Step(objective, parts.loss(outputs, labels).mean().unsqueeze(0))

    def of_target(self, parts: Parts, outputs: Tensor, batch: Batch) -> Tensor:
        """The objective of a second stage with pseudo-labels: `information` + beta CE(p, label)."""
        taught = parts.loss(outputs, batch.carried["labels"][batch.target_rows]).mean()
        return information(outputs) + self.beta * taught


@component
class Shot(SourceFree):
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
    target_phase = Phase("target", ("features",))

    beta: NonNegative = 0.3
    smoothing: Rate = 0.1
    adapt: Positive = 0.5

    def groups(self, sources: Group, target: str) -> tuple[Group, ...]:
        """One group of all sources."""
        return (sources,)

    def at_epoch(
        self,
        parts: Parts,
        target: TargetPass,
        carried: Carried,
        stage: Stage,
    ) -> Carried:
        """The pseudo-labels now."""
        return {"labels": pseudo_labels(target.features, target.outputs)}

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The stage's objective; the second stage has no values for the sources."""
        outputs = parts.predictor(parts.features(batch.x))
        if phase.name == "sources":
            return self.of_sources(parts, outputs, batch)
        return Step(self.of_target(parts, outputs, batch))
