"""Multiple feature spaces adaptation."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor, nn

from msda_bench.api import (
    AddedLater,
    Batch,
    Carried,
    Count,
    Discrepancy,
    Examples,
    Network,
    Parts,
    Phase,
    PluginError,
    Positive,
    Scheme,
    Stage,
    Step,
    component,
    fresh_copy,
)
from msda_bench_builtin.discrepancies import Mmd
from msda_bench_builtin.schemes.batches import source_risks
from msda_bench_builtin.schemes.ensemble import Each, mean_answer
from msda_bench_builtin.schemes.mdd import ramp_share


@component
class Mfsan(Scheme):
    """MFSAN: a separate feature space for each source, aligned with the target, and a classifier in it.

    Zhu et al. 2019 ("Aligning Domain-Specific Distribution and Classifier for Cross-Domain Classification from
    Multiple Sources", equations 2 and 5 to 7). On the shared features f, source i has an extractor h_i and a classifier
    c_i. With r_i the risk of c_i on source i, d_i the MMD between h_i(f) on source i and on the target, and p_i the
    probabilities of c_i on the target, the objective is

        mean r_i + mu (mean d_i + mean over pairs of |p_i - p_j|) (1 - exp(-ramp t)) / (1 + exp(-ramp t))

    with |p_i - p_j| a mean over examples and classes, and t the share of training done. The test averages the
    classifiers' probabilities.

    The mean of the risks is that of the authors' code, which takes a step for each source in turn (see `turns`); their
    text has the sum. Their extractor is three convolutions of 256 channels; here it is one linear layer as wide as the
    features, with ReLU, and c_i has the shape of the network's predictor, which itself is unused. Their code for three
    sources compares softmaxes of h_i(f) instead of the p_i of their text, which are used here.

    Parameters:
        kernels: Gaussian kernels of the MMD, bandwidths doubling from one to the next; their sum, as in the authors'
            code. 5 there.
        ramp: how fast both terms reach their weight; 10 in the paper. null for the full weight throughout.
        turns: updates in a step. In update j the means over i are of the sources j, j + turns and so on, so that with
            as many turns as sources each has an update of its own, in turn, as in the authors' code. All updates of a
            step see the same batches; theirs draw a new batch of the target for each. A step costs as many passes.

    mu is 0.5 in the paper, which tries 0.01 to 2, and 1 in the authors' code.
    """

    name = "mfsan"
    uses_discrepancy = False
    needs_target = True
    tasks = ("classification",)

    kernels: Count = 5
    ramp: Positive | None = 10.0
    turns: Annotated[Count, AddedLater()] = 1

    @property
    def stages(self) -> tuple[Stage, ...]:
        """A phase of all but the network's predictor for each turn."""
        phases = [Phase(str(turn), ("features", "critic")) for turn in range(self.turns)]
        return (Stage("all", phases=tuple(phases)),)

    def build(self, network: Network, k: int, discrepancy: Discrepancy | None) -> nn.Module:
        """The extractors, the classifiers and the MMD.

        Raises:
            PluginError: there are fewer sources than turns.
        """
        if self.turns > k:
            raise PluginError(f"scheme 'mfsan' has turns: {self.turns}, but {k} sources; set at most {k}")
        width = network.feature_dim
        extractors = Each(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(k))
        classifiers = Each(fresh_copy(network.predictor) for _ in range(k))
        mmd = Mmd(kernels=self.kernels).build(width, k)
        return nn.ModuleDict({"extractors": extractors, "classifiers": classifiers, "mmd": mmd})

    def step(self, parts: Parts, batch: Batch, state: Tensor, phase: Phase) -> Step:
        """The objective; the record's gaps are the MMDs."""
        k, size = batch.y.shape
        features = parts.features(batch.x)
        source = features[: k * size].reshape(k, size, -1)
        target = features[k * size :]
        own = parts.critic("extractors", torch.cat([source, target.expand(k, *target.shape)], 1))
        outputs = parts.critic("classifiers", own)
        risks = source_risks(parts, outputs[:, :size].flatten(0, 1), batch)
        gaps = self.kernels * parts.critic("mmd", own[:, :size], own[:, size:])
        share = ramp_share(self.ramp, batch.progress)
        now = slice(int(phase.name), None, self.turns)
        differ = gaps[now].mean() + _mean_distance(outputs[:, size:].softmax(-1), now)
        return Step(risks[now].mean() + parts.mu * share * differ, risks, gaps)

    def predict(self, parts: Parts, x: Examples, carried: Carried) -> tuple[Tensor, Tensor]:
        """The shared features, and the mean of the classifiers."""
        features = parts.features(x)
        return features, mean_answer(parts.critic("classifiers", parts.critic("extractors", features)))


def _mean_distance(answers: Tensor, now: slice) -> Tensor:
    """|p_i - p_j| of probabilities (k, n, classes), a mean over pairs, examples and classes; 0 for one classifier.

    Of each pair i is one of `now`.
    """
    chosen = answers[now]
    pairs = len(chosen) * (len(answers) - 1)
    distances = (answers.unsqueeze(0) - chosen.unsqueeze(1)).abs().mean((2, 3))
    return distances.sum() / max(1, pairs)
