"""Maximum classifier discrepancy."""

from __future__ import annotations

from torch import Tensor

from msda_bench.api import Batch, Count, Parts, Phase, Step, component
from msda_bench_builtin.schemes.two_classifiers import TwoClassifiers, apart, both


@component
class Mcd(TwoClassifiers):
    """MCD: two classifiers that disagree on the target, and features that make them agree again.

    Saito et al. 2018 ("Maximum Classifier Discrepancy for Unsupervised Domain Adaptation", steps A, B and C), on all
    sources together, each with a batch. With the classifiers' probabilities p1 and p2, a step has three phases on the
    same examples:

    1. "task": everything on the task loss, the sum of both classifiers' risks, a mean over the sources.
    2. "classifiers": the classifiers on task loss - |p1 - p2| on the target.
    3. "features": the features on |p1 - p2| on the target, `repeats` times.

    |p1 - p2| is a mean over examples and classes, and has no weight, so there is no mu. The test uses the first
    classifier, the network's predictor. The scheme `m3sda` adds moment matching.

    Parameters:
        repeats: how often the last phase is repeated; Saito et al. try 2 to 4.
    """

    name = "mcd"
    version = 2
    uses_mu = False

    repeats: Count = 4

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """A phase's objective.

        The record's risks are the mean of the two classifiers'. Its gaps are the differences between |p1 - p2| on a
        source and on the target, the estimate of the H-delta-H distance on which the method is based; its weights are
        equal.
        """
        k = len(batch.y)
        _, outputs, losses = both(parts, batch, phase)
        risks = losses.mean((0, 2))
        disagreement = apart(outputs).view(k + 1, -1).mean(1)
        match phase.name:
            case "task":
                objective = 2 * risks.mean()
            case "classifiers":
                objective = 2 * risks.mean() - disagreement[k]
            case _:
                objective = disagreement[k]
        gaps = (disagreement[k] - disagreement[:k]).abs()
        return Step(objective, risks, gaps)
